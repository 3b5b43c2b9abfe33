// One record of a table as cells, read as far as someone wants to know.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/table/text/fields.h"
#include "lockstep/data/table/values/notation.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// The way in which the cells of a column are read.
enum class Reading {
  kSkip,    ///< nothing
  kNumber,  ///< a number; other texts make the record bad
  kWeight,  ///< a number of 0 or more; all else makes the record bad, a missing value too
  kText,
  kEither,  ///< the text, and the number if it is one
};

struct Cell {
  bool missing = false;
  bool is_number = false;
  double number = 0;           ///< if is_number
  std::string_view text = {};  ///< the text, if Reading is kText or kEither; valid until the next record
};

/// A column of a file.
struct RowColumn {
  Reading reading = Reading::kSkip;
  Index cell = 0;                               ///< position in the record of cells
  bool required = false;                        ///< a missing value makes the record bad
  bool one_of = false;                          ///< a record without a value in any such column is bad
  std::optional<NumberNotation> notation = {};  ///< how its numbers are written, if they are not plain
  std::optional<DateForm> date = {};            ///< its numbers are the days of dates
  std::vector<std::string> missing = {};        ///< texts that stand for a missing value in this column only
};

/// The column of a file as it is read for a column of the schema, which is number `cell` there.
RowColumn row_column(const TableColumn& column, Reading reading, std::size_t cell);

class RowParser {
 public:
  /// `missing`: texts that stand for a missing value.
  RowParser(const Dialect& dialect, std::vector<RowColumn> columns, Index cells,
            std::vector<std::string> missing);

  /// The cells of a record; valid until the next call. Errors: BadRecord.
  std::span<const Cell> parse(std::string_view record);

 private:
  void read_number(Cell& cell, const RowColumn& column);
  void read_weight(Cell& cell, const RowColumn& column);
  void read_text(Cell& cell, const RowColumn& column);
  bool is_missing(std::string_view text, const RowColumn& column) const;
  void check_one_of() const;
  bool ends_here();

  FieldCursor cursor_;
  bool ends_with_separator_;
  std::vector<RowColumn> columns_;
  std::vector<Cell> cells_;
  std::vector<std::string> missing_;
  std::size_t longest_missing_ = 0;
  std::vector<Index> one_of_;  // cells of which one is to have a value
};

}  // namespace lockstep
