// The columns of any table, that of the training data or another, as a schema wants them: found by name, or
// by position if the table has no header.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "learn_schema.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/data/table/schema/infer.h"

namespace lockstep {
namespace {

// The column of the table for each of the schema, the number of columns for none. Without a header the
// position decides; a table to predict from may come without its labels and weights.
std::vector<std::size_t> find_columns(const TableText& table, const TableSchema& schema, bool labels) {
  std::vector<std::size_t> found;
  if (table.header) {
    std::unordered_map<std::string_view, std::size_t> number_of;  // index of each column, by its name
    for (std::size_t i = 0; i < table.names.size(); ++i) number_of.emplace(table.names[i], i);
    for (const TableColumn& column : schema.columns) {
      const auto position = number_of.find(column.name);
      found.push_back(position == number_of.end() ? table.names.size() : position->second);
    }
    return found;
  }
  const std::size_t all = schema.columns.size();
  const std::size_t without =
      all - static_cast<std::size_t>(std::ranges::count_if(schema.columns, &TableColumn::is_label_or_weight));
  const std::size_t names = table.names.size();
  if (names != all && (labels || names != without)) {
    throw DataError(fmt::format(
        "'{}' has {} columns and no header, expected {}{}", table.text.files.front().path, names, all,
        labels ? ""
               : fmt::format(" (or {} without labels{})", without, schema.weighted() ? " and weights" : "")));
  }
  std::size_t next = 0;
  for (const TableColumn& column : schema.columns) {
    found.push_back(column.is_label_or_weight() && names != all ? names : next++);
  }
  return found;
}

Reading reading_of(const TableColumn& column) {
  if (column.weight) return Reading::kWeight;
  return column.kind == ColumnKind::kNumeric ? Reading::kNumber : Reading::kText;
}

}  // namespace

std::vector<RowColumn> match_columns(const TableText& table, const TableSchema& schema, bool labels) {
  std::vector<RowColumn> matched(table.names.size());
  const std::vector<std::size_t> positions = find_columns(table, schema, labels);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const TableColumn& column = schema.columns[i];
    if (column.kind == ColumnKind::kIgnored || (column.is_label_or_weight() && !labels)) continue;
    if (positions[i] == table.names.size()) {
      const std::string nearest = nearest_name(column.name, table.names);
      throw DataError(
          fmt::format("'{}' has no column {}, {}{}; its columns: {}", table.text.files.front().path,
                      in_quotes(column.name),
                      column.label    ? "the label"
                      : column.weight ? "the weights of its records (data.weight)"
                                      : "which the model takes",
                      nearest.empty() ? "" : fmt::format(" (did {} mean that?)", in_quotes(nearest)),
                      listed(table.names)));
    }
    const bool one_label = schema.labels() == 1;
    RowColumn& row = matched[positions[i]];
    row = row_column(column, reading_of(column), i);
    row.required = column.label && one_label;
    row.one_of = column.label && !one_label;
  }
  return matched;
}

}  // namespace lockstep
