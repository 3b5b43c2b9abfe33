#include "far_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/data/message.h"

namespace lockstep {

FarNumbers::FarNumbers(const TableSchema& schema) : schema_(&schema) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    const TableColumn& column = schema.columns[i];
    const bool is_number = column.is_feature() && column.kind == ColumnKind::kNumeric;
    if (!is_number || !(column.numbers.min < column.numbers.max)) continue;
    const auto plain = [&column](double x) {  // the schema has the numbers' logarithms
      return column.scale == Scale::kLog ? std::copysign(std::expm1(std::abs(x)), x) : x;
    };
    bounds_.push_back({i, plain(column.numbers.min), plain(column.numbers.max)});
  }
}

void FarNumbers::add(std::span<const Cell> cells, std::size_t file) {
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    const auto& [cell, min, max] = bounds_[i];
    const double number = cells[cell].number;
    const double span = max - min;
    if (cells[cell].is_number && (number < min - span || number > max + span))
      found_[{file, i}].merge({.count = 1, .mean = number, .min = number, .max = number});
  }
}

std::vector<std::string> FarNumbers::describe(const TextFiles& text, PeerGroup& peers) const {
  MessageWriter mine;
  for (const auto& [where, outside] : found_) mine.put(Outside{where.first, where.second, outside});
  Found all;
  for (const Bytes& message : peers.all_gather(mine.bytes())) {
    for (MessageReader reader(message); !reader.done();) {
      const auto theirs = reader.take<Outside>();
      all[{theirs.file, theirs.bounds}].merge(theirs.numbers);
    }
  }
  std::map<std::size_t, std::vector<std::string>> columns;  // by file
  for (const auto& [where, outside] : all)
    columns[where.first].push_back(describe(bounds_[where.second], outside));
  std::vector<std::string> lines;
  for (const auto& [file, found] : columns) {
    constexpr std::size_t kMaxColumns = 5;
    const auto shown = std::span(found).first(std::min(kMaxColumns, found.size()));
    lines.push_back(fmt::format(
        "{}values lie far outside of those that the model learnt from: {}{}; are they in the same unit?",
        text.files.size() == 1 ? "" : in_quotes(text.files[file].path) + ": ", fmt::join(shown, "; "),
        found.size() > shown.size() ? fmt::format("; and {} columns more", found.size() - shown.size())
                                    : ""));
  }
  return lines;
}

std::string FarNumbers::describe(const Bounds& bounds, const NumberStats& outside) const {
  const TableColumn& column = schema_->columns[bounds.cell];
  const auto text = [&column](double number) {
    return column.date ? write_date(number, column.date->form) : fmt::format("{:.6g}", number);
  };
  const std::string range =
      outside.min == outside.max ? text(outside.min) : text(outside.min) + " to " + text(outside.max);
  return fmt::format("{} has {} in {}, in training {} to {}", in_quotes(column.name), range,
                     plural(outside.count, "record"), text(bounds.min), text(bounds.max));
}

}  // namespace lockstep
