#include "lockstep/data/table/text/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

void check_size(double number, Index position) {
  if (std::abs(number) <= double{std::numeric_limits<Scalar>::max()}) return;
  throw BadRecord{position, fmt::format("'{:g}'", number), "a number that single precision can hold"};
}

std::optional<double> number_in(std::string_view text, const RowColumn& column) {
  if (column.date) return parse_date(text, *column.date);
  return column.notation ? parse_number(text, *column.notation) : parse_number(text);
}

}  // namespace

RowColumn row_column(const TableColumn& column, Reading reading, std::size_t cell) {
  return {.reading = reading,
          .cell = static_cast<Index>(cell),
          .notation = column.notation,
          .date = column.date ? std::optional(column.date->form) : std::nullopt,
          .missing = column.missing_values};
}

RowParser::RowParser(const Dialect& dialect, std::vector<RowColumn> columns, Index cells,
                     std::vector<std::string> missing)
    : cursor_(dialect),
      ends_with_separator_(dialect.ends_with_separator),
      columns_(std::move(columns)),
      cells_(static_cast<std::size_t>(cells)),
      missing_(std::move(missing)) {
  for (const RowColumn& column : columns_) {
    if (column.one_of) one_of_.push_back(column.cell);
  }
  for (const std::string& text : missing_) longest_missing_ = std::max(longest_missing_, text.size());
}

bool RowParser::is_missing(std::string_view text, const RowColumn& column) const {
  if (text.size() <= longest_missing_ && std::ranges::find(missing_, text) != missing_.end()) return true;
  return std::ranges::find(column.missing, text) != column.missing.end();
}

void RowParser::read_number(Cell& cell, const RowColumn& column) {
  cell.missing = false;
  cell.is_number = true;
  const Index position = cursor_.column();
  if (!column.notation && !column.date && cursor_.take_number(cell.number)) {
    check_size(cell.number, position);
    return;
  }
  const std::string_view text = cursor_.take_text();
  if (const auto number = number_in(text, column)) {
    cell.number = *number;
    check_size(cell.number, position);
    return;
  }
  if (!is_missing(text, column) || column.required) {
    throw BadRecord{position, in_quotes(text), column.date ? "a date" : "a number"};
  }
  cell.missing = true;
  cell.is_number = false;
}

void RowParser::read_weight(Cell& cell, const RowColumn& column) {
  const Index position = cursor_.column();
  const std::string_view text = cursor_.take_text();
  const auto number = number_in(text, column);
  if (!number || *number < 0)
    throw BadRecord{position, in_quotes(text), "a weight, which is a number of 0 or more"};
  check_size(*number, position);
  constexpr double kLeast = std::numeric_limits<Scalar>::min();
  if (*number > 0 && *number < kLeast) {  // a step may divide by it
    throw BadRecord{position, in_quotes(text), "a weight of 0, or one that single precision can hold"};
  }
  cell = {.is_number = true, .number = *number};
}

void RowParser::read_text(Cell& cell, const RowColumn& column) {
  const Index position = cursor_.column();
  cell.text = cursor_.take_text();
  cell.is_number = false;
  cell.missing = is_missing(cell.text, column);
  if (cell.missing && column.required) throw BadRecord{position, in_quotes(cell.text), "a label"};
  if (cell.missing || column.reading != Reading::kEither) return;
  if (const auto number = number_in(cell.text, column)) {
    cell.number = *number;
    cell.is_number = true;
  }
}

// Behind the last column: takes the empty field behind a separator that ends the record.
bool RowParser::ends_here() {
  return ends_with_separator_ && cursor_.take_text().empty() && cursor_.done();
}

// Errors: BadRecord if all columns of which one is to have a value are without.
void RowParser::check_one_of() const {
  if (one_of_.empty()) return;
  if (std::ranges::any_of(one_of_, [this](Index cell) { return !at(cells_, cell).missing; })) return;
  throw BadRecord{-1, "no label", fmt::format("at least one of {}", one_of_.size())};
}

std::span<const Cell> RowParser::parse(std::string_view record) {
  cursor_.start(record);
  for (const RowColumn& column : columns_) {
    if (cursor_.done()) {
      throw BadRecord{-1, fmt::format("{} fields", cursor_.column()), fmt::format("{}", columns_.size())};
    }
    Cell& cell = at(cells_, column.cell);
    switch (column.reading) {
      case Reading::kSkip:
        cursor_.take_text();
        break;
      case Reading::kNumber:
        read_number(cell, column);
        break;
      case Reading::kWeight:
        read_weight(cell, column);
        break;
      case Reading::kText:
      case Reading::kEither:
        read_text(cell, column);
        break;
    }
  }
  if (!cursor_.done() && !ends_here()) {
    throw BadRecord{-1, fmt::format("more than {} fields", columns_.size()),
                    fmt::format("{}", columns_.size())};
  }
  check_one_of();
  return cells_;
}

}  // namespace lockstep
