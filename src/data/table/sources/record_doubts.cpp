#include "record_doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

bool has_affix(const TableColumn& column) {
  return column.notation && !(column.notation->prefix.empty() && column.notation->suffix.empty());
}

bool has_its_affix(const NumberNotation& notation, std::string_view text) {
  const auto holds = [text](const std::string& affix) {
    return !affix.empty() && text.find(affix) != std::string_view::npos;
  };
  return holds(notation.prefix) || holds(notation.suffix);
}

bool may_have_thousands(const TableColumn& column) {
  const auto whole = [](double number) { return number == std::floor(number); };
  return column.is_number() && !column.notation && column.scale != Scale::kLog &&
         column.numbers.max >= 1000 && whole(column.numbers.max) && whole(column.numbers.min);
}

bool is_emptier(Index missing, Index records, Index missing_in_training, Index trained) {
  constexpr double kMore = 0.3;
  if (records == 0 || trained == 0) return false;
  const double usual = static_cast<double>(missing_in_training) / static_cast<double>(trained);
  return static_cast<double>(missing) / static_cast<double>(records) > usual + kMore;
}

void refuse_empty_ahead(const std::string& name, const TableColumn& column, Index coming, Index missing) {
  if (coming == 0 || missing < coming) return;
  throw DataError(
      "'{}': column {} is known ahead (data.future), and has no value in any of the {} without a label: "
      "fill it in",
      name, in_quotes(column.name), plural(coming, "record"));
}

}  // namespace

RecordDoubts::RecordDoubts(const TableSchema& schema)
    : schema_(&schema), far_(schema), labels_(schema.targets()), counts_(schema.columns.size() * kCounts) {
  for (const TableColumn& column : schema.columns) {
    columns_.push_back({.may_have_thousands = may_have_thousands(column), .has_affix = has_affix(column)});
    if (column.kind == ColumnKind::kNumeric && !column.label)
      trained_ = std::max(trained_, column.numbers.count + column.missing);
  }
}

void RecordDoubts::add(std::span<const Cell> cells, std::size_t file, std::span<const Index> unseen) {
  far_.add(cells, file);
  const bool is_coming = schema_->windows && std::ranges::all_of(labels_, [cells](std::size_t label) {
                           return cells[label].missing;
                         });
  ++records_;
  coming_ += is_coming ? 1 : 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Cell& cell = cells[i];
    Column& column = columns_[i];
    if (cell.missing) {
      ++count(i, kMissing);
      count(i, kMissingAhead) += is_coming ? 1 : 0;
    }
    if (unseen[i] > 0 && column.unseen.empty()) column.unseen = cell.text;
    if (!cell.is_number) continue;
    if (column.has_affix && !has_its_affix(*schema_->columns[i].notation, cell.text)) ++count(i, kPlain);
    if (column.may_have_thousands) add_number(i, cell.number);
  }
}

void RecordDoubts::add_number(std::size_t column, double number) {
  const double size = std::abs(number);
  const auto has_places = [size](double unit) {
    return std::abs(size * unit - std::round(size * unit)) < 1e-6;
  };
  if (size >= 1000 || !has_places(1000) || (size < 1 && !has_places(1))) {
    ++count(column, kOthers);
  } else if (size >= 1 && !has_places(100)) {
    ++count(column, kThousandths);
    columns_[column].example = number;
  }
}

std::string RecordDoubts::unseen_example(std::size_t column) const {
  const std::string& text = columns_[column].unseen;
  if (text.empty()) return "";
  const auto number = parse_number(text);
  const auto is_it = [&number](const std::string& value) { return number && parse_number(value) == number; };
  const std::vector<std::string>& values = schema_->columns[column].values;
  const auto twin = std::ranges::find_if(values, is_it);
  return fmt::format(", such as {}{}", in_quotes(text),
                     twin == values.end() ? "" : fmt::format(" (training has {})", in_quotes(*twin)));
}

std::vector<std::string> RecordDoubts::describe(const TextFiles& text, const std::string& name,
                                                PeerGroup& peers) const {
  std::vector<std::string> lines = far_.describe(text, peers);
  std::vector<Index> sums = counts_;
  sums.insert(sums.end(), {records_, coming_});
  sums = sum_over_ranks(sums, peers);
  const Index coming = sums.back();
  const Index records = sums[sums.size() - 2];
  std::vector<std::string> empty;
  std::vector<std::string> otherwise_written;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const TableColumn& column = schema_->columns[i];
    if (!column.is_feature()) continue;
    const std::span<const Index> counts = std::span(sums).subspan(i * kCounts, kCounts);
    if (schema_->windows && std::ranges::count(schema_->windows->future, column.name) > 0)
      peers.agree([&] { refuse_empty_ahead(name, column, coming, counts[kMissingAhead]); });
    if (is_emptier(counts[kMissing], records, column.missing, trained_))
      empty.push_back(fmt::format("{} in {} of {} records, in training in {} of {}", in_quotes(column.name),
                                  with_commas(counts[kMissing]), with_commas(records),
                                  with_commas(column.missing), with_commas(trained_)));
    describe_column(i, counts, records, otherwise_written);
  }
  if (!empty.empty())
    lines.push_back(
        fmt::format("columns are empty more often than in training, and a usual value stands "
                    "for the missing ones: {}",
                    listed(empty, 5)));
  std::ranges::copy(otherwise_written, std::back_inserter(lines));
  return lines;
}

// How its numbers are written otherwise than those of training.
void RecordDoubts::describe_column(std::size_t column, std::span<const Index> counts, Index records,
                                   std::vector<std::string>& lines) const {
  const TableColumn& of_training = schema_->columns[column];
  const std::string name = in_quotes(of_training.name);
  const Index plain = counts[kPlain];
  if (plain > 0 && plain == records - counts[kMissing])
    lines.push_back(
        fmt::format("column {}: no value has the {} of the training data: are they in the same unit?", name,
                    in_quotes(of_training.notation->prefix + of_training.notation->suffix)));
  if (counts[kThousandths] == 0 || counts[kOthers] > 0) return;
  const double example = columns_[column].example;
  lines.push_back(
      fmt::format("column {}: {}{} with three places behind the point, where training has whole "
                  "numbers up to {:.0f}: if the point stands between thousands, write them "
                  "without it",
                  name, plural(counts[kThousandths], "number"),
                  example == 0 ? "" : fmt::format(", such as {:.3f},", example), of_training.numbers.max));
}

}  // namespace lockstep
