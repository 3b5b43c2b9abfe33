// Columns of a table that stand beside its predictions, as they are written: they are read once more, in
// order, record by record, by the one rank that writes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/table/text/table_text.h"

namespace lockstep {

/// The names in a list such as 'id,"last, first"': those with commas or quotes in them as cells of CSV.
/// Errors: ConfigError naming `flag` for an empty name, one that is there twice, or quotes that are wrong.
std::vector<std::string> parse_column_names(std::string_view flag, const std::string& text);

/// Texts that stand beside predictions, row by row.
class TextColumns {
 public:
  virtual ~TextColumns() = default;
  virtual std::span<const std::string> names() const = 0;
  /// Whether all cells are numbers.
  virtual bool are_numbers() const { return false; }
  /// The cells of the next row, one for each name; valid until the next call. Errors: DataError.
  virtual std::span<const std::string> next() = 0;
};

class KeptColumns final : public TextColumns, NoCopy {
 public:
  /// `table`: whose records have been counted; must outlive it. Errors: ConfigError naming --keep for a
  /// column that it does not have.
  KeptColumns(const TableText& table, std::vector<std::string> names);

  std::span<const std::string> names() const override { return names_; }
  /// The cells of the next record, bad ones included, of which nothing is known: they have empty cells. Valid
  /// until the next call. Errors: DataError if there is none left, as the files have changed.
  std::span<const std::string> next() override;

 private:
  void read_chunk();

  std::vector<std::string> names_;
  const TableText& table_;
  std::vector<RowColumn> columns_;
  std::optional<TableReader> reader_;
  std::size_t chunk_ = 0;           // that is read next
  std::vector<std::string> cells_;  // of all records of the chunk that was read last
  std::size_t next_ = 0;            // in cells_
};

}  // namespace lockstep
