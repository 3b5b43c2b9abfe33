// Tables made of their columns: each says its head, and what stands in it for a row. See text_table() for the
// terminal.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/base/text.h"

namespace lockstep {

using Cells = std::vector<std::string>;

template <class Row>
struct ShownColumn {
  std::string head;
  std::function<std::string(const Row&)> cell;
};

/// The heads, then the cells of each row.
template <class Row>
std::vector<Cells> table_of(const std::vector<ShownColumn<Row>>& columns,
                            std::type_identity_t<std::span<const Row>> rows) {
  std::vector<Cells> table(1);
  for (const ShownColumn<Row>& column : columns) table.front().push_back(column.head);
  for (const Row& row : rows) {
    Cells& cells = table.emplace_back();
    for (const ShownColumn<Row>& column : columns) cells.push_back(column.cell(row));
  }
  return table;
}

/// One line for each of them.
inline std::string csv_table(const std::vector<Cells>& rows) {
  std::string text;
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(row[i]);
    text += '\n';
  }
  return text;
}

}  // namespace lockstep
