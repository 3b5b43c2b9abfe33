#include "findings.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/hash.h"
#include "lockstep/data/table/schema/scan.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxDifferent = 1'000'000;
constexpr std::size_t kMaxSampled = 50'000;
constexpr std::size_t kMinSampled = 1'000;
constexpr std::size_t kMaxValues = 2'000'000;  // values of all columns in the sample
constexpr double kMaxWhole = 0x1p53;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t with) {
  return id_hash(hash, static_cast<Index>(with));
}

}  // namespace

void HashCounts::add(std::uint64_t hash, Index record) {
  if (!keeps(hash)) return;
  Entry& entry = entries_[hash];
  ++entry.count;
  if (entry.count == 1) entry.first = record;
  if (entry.count == 2) entry.second = record;
  while (entries_.size() > limit_) {
    bound_ /= 2;
    std::erase_if(entries_, [this](const auto& each) { return !keeps(each.first); });
  }
}

RecordSketch::RecordSketch(const std::vector<TableColumn>& columns, const std::vector<Index>& positions)
    : columns_(columns),
      positions_(positions),
      whole_(kMaxDifferent),
      features_(kMaxDifferent),
      max_sampled_(
          std::clamp(kMaxValues / std::max<std::size_t>(1, columns.size()), kMinSampled, kMaxSampled)),
      values_(columns.size()),
      wholes_(columns.size()) {}

void RecordSketch::Wholes::add(const SketchValue& value) {
  if (!all_different || value.missing) return;
  const bool whole = value.number == std::floor(value.number) && std::abs(value.number) < kMaxWhole;
  if (count++ == 0) first = value.number;
  all_different =
      whole && (seen.size() >= kMaxDifferent || seen.insert(static_cast<std::int64_t>(value.number)).second);
  if (!all_different) seen = {};
}

// Drops a half of the sample whenever it is twice as large as it may be.
void RecordSketch::keep_sample() {
  if (sample_.size() < 2 * max_sampled_) return;
  std::vector<std::uint64_t> hashes;
  for (const Sampled& each : sample_) hashes.push_back(each.hash);
  const auto middle = hashes.begin() + static_cast<std::ptrdiff_t>(max_sampled_);
  std::ranges::nth_element(hashes, middle);
  bound_ = *middle;
  std::erase_if(sample_, [this](const Sampled& each) { return each.hash >= bound_; });
}

void RecordSketch::add(std::span<const Cell> cells) {
  std::uint64_t whole = 0;
  std::uint64_t features = 0;
  const std::uint64_t record_hash = id_hash(1, records_);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const TableColumn& column = columns_[i];
    if (column.kind == ColumnKind::kIgnored) continue;
    const Cell& cell = cells[i];
    const bool missing = cell.missing || positions_[i] < 0;
    SketchValue& value = values_[i];
    value = {.missing = missing || (column.kind == ColumnKind::kNumeric && !cell.is_number),
             .number = cell.number,
             .text = hash_text(missing ? std::string_view() : cell.text)};
    if (column.kind == ColumnKind::kNumeric) wholes_[i].add(value);
    const std::uint64_t content = mixed(i, mixed(missing ? 1 : 0, value.text));
    whole = mixed(whole, content);
    if (column.is_feature()) features = mixed(features, content);
  }
  whole_.add(whole, records_);
  features_.add(features, records_);
  if (record_hash < bound_) sample_.push_back({record_hash, values_});
  ++records_;
  keep_sample();
}

RecordSketch sketch_records(const TableText& table, const std::vector<TableColumn>& columns,
                            const std::vector<Index>& positions, const std::vector<std::string>& missing) {
  RecordSketch sketch(columns, positions);
  std::vector<RowColumn> rows(table.names.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (positions[i] >= 0) at(rows, positions[i]) = row_column(columns[i], Reading::kEither, i);
  }
  const std::vector<ColumnWants> wants(columns.size());
  scan_table({.table = table,
              .columns = rows,
              .wants = wants,
              .missing = missing,
              .bad = {.action = OnBadRecord::kSkip},
              .check = [&sketch](std::span<const Cell> cells) { sketch.add(cells); }},
             alone());
  return sketch;
}

}  // namespace lockstep
