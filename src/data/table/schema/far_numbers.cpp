#include "far_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/data/table/values/message.h"

namespace lockstep {

FarNumbers::FarNumbers(const TableSchema& schema) : schema_(schema) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    const TableColumn& column = schema.columns[i];
    if (!column.is_feature() || !column.is_number() || !(column.numbers.min < column.numbers.max)) continue;
    const auto plain = [&column](double x) {  // the schema has the numbers' logarithms
      return column.scale == Scale::kLog ? std::copysign(std::expm1(std::abs(x)), x) : x;
    };
    bounds_.push_back({.cell = i, .min = plain(column.numbers.min), .max = plain(column.numbers.max)});
  }
}

void FarNumbers::add(std::span<const Cell> cells, std::size_t file) {
  for (const Bounds& bounds : bounds_) {
    const Cell& cell = cells[bounds.cell];
    const double span = bounds.max - bounds.min;
    if (!cell.is_number || (cell.number >= bounds.min - span && cell.number <= bounds.max + span)) continue;
    add(found_, {file, bounds.cell, 1, cell.number, cell.number});
  }
}

void FarNumbers::add(Found& found, const Outside& outside) {
  const auto [entry, is_new] = found.try_emplace({outside.file, outside.cell}, outside);
  if (is_new) return;
  Outside& known = entry->second;
  known.records += outside.records;
  known.min = std::min(known.min, outside.min);
  known.max = std::max(known.max, outside.max);
}

std::string FarNumbers::describe(const Outside& outside) const {
  const auto bounds = std::ranges::find(bounds_, outside.cell, &Bounds::cell);
  const std::string range = outside.min == outside.max
                                ? fmt::format("{:.6g}", outside.min)
                                : fmt::format("{:.6g} to {:.6g}", outside.min, outside.max);
  return fmt::format("{} has {} in {}, in training {:.6g} to {:.6g}",
                     in_quotes(schema_.columns[outside.cell].name), range, plural(outside.records, "record"),
                     bounds->min, bounds->max);
}

std::vector<std::string> FarNumbers::describe(const TextFiles& text, PeerGroup& peers) const {
  constexpr std::size_t kMaxColumns = 5;
  MessageWriter mine;
  for (const auto& [where, outside] : found_) mine.put(outside);
  Found all;
  for (const Bytes& message : peers.all_gather(mine.bytes())) {
    for (MessageReader reader(message); !reader.done();) add(all, reader.take<Outside>());
  }
  std::vector<std::vector<std::string>> columns(text.files.size());
  for (const auto& [where, outside] : all) columns[outside.file].push_back(describe(outside));
  std::vector<std::string> lines;
  for (std::size_t file = 0; file < columns.size(); ++file) {
    const std::vector<std::string>& found = columns[file];
    if (found.empty()) continue;
    const auto shown = std::span(found).first(std::min(kMaxColumns, found.size()));
    lines.push_back(fmt::format(
        "{}numbers lie far outside of those that the model learnt from: {}{}; are they in the same unit?",
        columns.size() == 1 ? "" : in_quotes(text.files[file].path) + ": ", fmt::join(shown, "; "),
        found.size() > shown.size() ? fmt::format("; and {} columns more", found.size() - shown.size())
                                    : ""));
  }
  return lines;
}

}  // namespace lockstep
