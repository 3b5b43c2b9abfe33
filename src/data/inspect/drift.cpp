// Two samples of numbers are compared by the largest difference of the shares below a number (Kolmogorov and
// Smirnov), two of texts by half the sum of the differences of the shares of each text. Both are 0 for equal
// samples and 1 for samples without a common value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "findings.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/schema/scan.h"

namespace lockstep {
namespace {

// Smaller distances matter little, and those below a bound that falls with the size of the samples are
// chance.
constexpr double kMinDistance = 0.1;
constexpr double kChance = 2;

struct Distance {
  double distance = 0;
  double where = 0;  // the number below which the shares differ most
  double chance = 1;
};

double chance_of(std::size_t first, std::size_t second) {
  const auto n = static_cast<double>(first);
  const auto m = static_cast<double>(second);
  return kChance * std::sqrt((n + m) / (n * m));
}

Distance compare_numbers(const std::vector<double>& first, const std::vector<double>& second) {
  if (first.empty() || second.empty()) return {};
  Distance found{.chance = chance_of(first.size(), second.size())};
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < first.size() && k < second.size()) {
    const double at = std::min(first[i], second[k]);
    while (i < first.size() && first[i] == at) ++i;
    while (k < second.size() && second[k] == at) ++k;
    const double difference = std::abs(static_cast<double>(i) / static_cast<double>(first.size()) -
                                       static_cast<double>(k) / static_cast<double>(second.size()));
    if (difference > found.distance) found = {difference, at, found.chance};
  }
  return found;
}

Distance compare_texts(const RecordSketch& first, const RecordSketch& second, std::size_t column) {
  std::unordered_map<std::uint64_t, double> differences;
  const auto add = [&](const RecordSketch& sketch, double sign) {
    for (const SketchedRecord& record : sketch.sample())
      differences[record.values[column].text] += sign / static_cast<double>(sketch.sample().size());
  };
  if (first.sample().empty() || second.sample().empty()) return {};
  add(first, 1);
  add(second, -1);
  double sum = 0;
  for (const auto& [text, difference] : differences) sum += std::abs(difference);
  // Each text adds its own chance, about as its root.
  const double chance = chance_of(first.sample().size(), second.sample().size()) *
                        std::sqrt(static_cast<double>(differences.size())) / 2;
  return {.distance = sum / 2, .chance = chance};
}

class Comparison {
 public:
  Comparison(const TableInspection& inspection, const RecordSketch& sketch, const FileSet& other)
      : inspection_(inspection), sketch_(sketch), other_(other) {
    const TableSchema known{.missing_values = {}, .columns = inspection.columns};
    TableText table = open_table_text(other.paths, inspection.options, alone(), &known);
    const std::vector<std::string>& missing = inspection.options.missing_values;
    std::vector<TableColumn> columns(table.names.size());
    std::unordered_map<std::string_view, Index> number_of;
    for (Index i = 0; i < std::ssize(table.names); ++i) number_of.emplace(at(table.names, i), i);
    for (const TableColumn& column : inspection.columns) {
      const auto found = number_of.find(column.name);
      positions_.push_back(found == number_of.end() ? -1 : found->second);
      if (positions_.back() >= 0) at(columns, positions_.back()) = column;
    }
    scan_ = look_at_columns(table, columns, true, missing, alone());
    theirs_.emplace(sketch_records(table, inspection.columns, positions_, missing));
  }

  std::vector<Finding> take() {
    for (std::size_t i = 0; i < inspection_.columns.size(); ++i) {
      const TableColumn& column = inspection_.columns[i];
      if (!column.is_feature() || positions_[i] < 0) continue;
      const ColumnSummary& theirs = at(scan_.columns, positions_[i]);
      const ColumnSummary& ours = inspection_.scan.columns[i];
      if (column.is_number()) look_at_numbers(i, theirs.numbers, ours.numbers);
      if (column.kind != ColumnKind::kNumeric && !ours.countless()) look_at_texts(column, theirs, ours);
      look_at_missing(column, theirs.missing, ours.missing);
      look_at_distance(i);
    }
    look_at_records();
    return std::move(findings_);
  }

 private:
  // Values that are missing more often by far.
  void look_at_missing(const TableColumn& column, Index theirs, Index ours) {
    constexpr double kMorePercent = 30;
    const double usual = percent(ours, inspection_.scan.good);
    if (percent(theirs, scan_.good) <= usual + kMorePercent) return;
    findings_.push_back(
        {FindingKind::kMissing, column.name, theirs,
         fmt::format("it is empty in {} of {} records of {} ({:.3g} %), in training in {:.3g} %",
                     with_commas(theirs), with_commas(scan_.good), other_.name, percent(theirs, scan_.good),
                     usual)});
  }

  // Numbers beyond the range of the training data.
  void look_at_numbers(std::size_t column, const NumberStats& theirs, const NumberStats& range) {
    if (range.count == 0 || theirs.count == 0 || (theirs.min >= range.min && theirs.max <= range.max)) return;
    Index beyond = 0;  // of the sample
    for (const SketchedRecord& record : theirs_->sample()) {
      const SketchValue& value = record.values[column];
      beyond += !value.missing && (value.number < range.min || value.number > range.max) ? 1 : 0;
    }
    beyond = std::max<Index>(1, beyond);
    findings_.push_back(
        {FindingKind::kUnseen, inspection_.columns[column].name, beyond,
         fmt::format("its values in {} reach from {:.6g} to {:.6g}, those of the training data from {:.6g} "
                     "to {:.6g} ({} of {} records are beyond)",
                     other_.name, theirs.min, theirs.max, range.min, range.max, with_commas(beyond),
                     with_commas(std::ssize(theirs_->sample())))});
  }

  // Texts that the training data does not have.
  void look_at_texts(const TableColumn& column, const ColumnSummary& theirs, const ColumnSummary& ours) {
    std::unordered_set<std::string> known;
    for (const ValueCounts::Entry& entry : ours.values()) known.insert(entry.text);
    Index unseen = 0;
    std::string example;
    for (const ValueCounts* counts : {&theirs.text_counts, &theirs.number_counts}) {
      for (const ValueCounts::Entry& entry : counts->by_count()) {
        if (known.contains(entry.text)) continue;
        if (unseen == 0) example = entry.text;
        unseen += entry.count;
      }
    }
    if (unseen == 0) return;
    const Index all = theirs.present();
    findings_.push_back(
        {FindingKind::kUnseen, column.name, unseen,
         fmt::format("{} of {} values of {} ({:.3g} %) are not in the training data, such as {}",
                     with_commas(unseen), with_commas(all), other_.name, percent(unseen, all),
                     in_quotes(example))});
  }

  void look_at_distance(std::size_t i) {
    const TableColumn& column = inspection_.columns[i];
    const bool numeric = column.kind == ColumnKind::kNumeric;
    const Distance found = numeric ? compare_numbers(numbers_of(sketch_, i), numbers_of(*theirs_, i))
                                   : compare_texts(sketch_, *theirs_, i);
    if (found.distance < kMinDistance || found.distance < found.chance) return;
    const Index sampled = std::ssize(theirs_->sample());
    const std::string where =
        column.date ? write_date(found.where, column.date->form) : fmt::format("{:.6g}", found.where);
    const std::string what =
        numeric ? fmt::format("the shares of values up to {} differ by {:.3g}", where, found.distance)
                : fmt::format("the shares of its values differ by {:.3g} in all", found.distance);
    findings_.push_back({FindingKind::kDrift, column.name, sampled,
                         fmt::format("it is distributed otherwise in {} than in the training data: {} (of 1 "
                                     "at most, in {} records)",
                                     other_.name, what, with_commas(sampled)),
                         ignore_line(column.name)});
  }

  void look_at_records() {
    const HashCounts& ours = sketch_.features();
    Index common = 0;
    Index looked_at = 0;
    const HashCounts::Entry* first = nullptr;
    const HashCounts::Entry* second = nullptr;
    for (const auto& [hash, entry] : theirs_->features().entries()) {
      if (!ours.keeps(hash)) continue;
      looked_at += entry.count;
      const auto found = ours.entries().find(hash);
      if (found == ours.entries().end()) continue;
      common += entry.count;
      if (second != nullptr && second->first < entry.first) continue;
      first = &found->second;
      second = &entry;
    }
    if (common == 0) return;
    findings_.push_back(
        {FindingKind::kOverlap, "", common,
         fmt::format("{} of {} records of {} ({:.3g} %) have the features of a record of the training data, "
                     "such as its record {} and record {} there: the model looks better than it is; remove "
                     "them from one of the files",
                     with_commas(common), with_commas(looked_at), other_.name, percent(common, looked_at),
                     with_commas(second->first + 1), with_commas(first->first + 1))});
  }

  const TableInspection& inspection_;
  const RecordSketch& sketch_;
  const FileSet& other_;
  std::vector<Index> positions_;  // positions of the columns in the other set; -1: not there
  Scan scan_;                     // of the other set
  std::optional<RecordSketch> theirs_;
  std::vector<Finding> findings_;
};

constexpr std::size_t kMaxDifferent = 1'000'000;
constexpr std::size_t kMaxSampled = 50'000;
constexpr std::size_t kMinSampled = 1'000;
constexpr std::size_t kMaxValues = 2'000'000;  // values of all columns in the sample
constexpr double kMaxWhole = 0x1p53;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t with) {
  return id_hash(hash, static_cast<Index>(with));
}

}  // namespace

std::vector<Finding> compare_with(const TableInspection& inspection, const RecordSketch& sketch,
                                  const FileSet& other) {
  return Comparison(inspection, sketch, other).take();
}

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
  for (const SketchedRecord& each : sample_) hashes.push_back(each.hash);
  const auto middle = hashes.begin() + static_cast<std::ptrdiff_t>(max_sampled_);
  std::ranges::nth_element(hashes, middle);
  bound_ = *middle;
  std::erase_if(sample_, [this](const SketchedRecord& each) { return each.hash >= bound_; });
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

RecordSketch sketch_records(TableText& table, const std::vector<TableColumn>& columns,
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
              .check = [&sketch](std::span<const Cell> cells, const TextChunk&) { sketch.add(cells); }},
             alone());
  return sketch;
}

}  // namespace lockstep
