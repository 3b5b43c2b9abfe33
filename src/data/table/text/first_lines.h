// The first lines of a table: its separator, the names of its columns, and lines above it that are not its
// own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// The fields of a record. Errors: BadRecord.
std::vector<std::string> split_record(const Dialect& dialect, std::string_view record);

/// Names for the columns, the fields of the first record if it is a header. Distinct: none is empty or used
/// twice. `renamed` gets a warning for each that changes.
std::vector<std::string> name_columns(const std::vector<std::string>& fields, bool header,
                                      std::vector<std::string>& renamed);

class FirstLines {
 public:
  /// Reads the first lines of a file. data.skip_lines is not looked at. Errors: as of look_at_text_file.
  FirstLines(const std::string& path, const TableOptions& options);

  /// How the record behind so many lines is separated. A record in which the separator of the config does not
  /// occur, but another one does, is separated by that, with a warning: a model that learnt from one file can
  /// be given another.
  Dialect dialect(Index skipped, std::vector<std::string>& warnings) const;

  /// The fewest lines, `most` at most, above a record that has the columns of the schema; nothing if no
  /// record has. Labels and weights may be missing.
  std::optional<Index> lines_above(const TableSchema& schema, Index most) const;

  /// Lines at the start that have fewer fields than nearly all lines behind them: a title, notes.
  struct Title {
    Index lines = 0;           ///< 0: the first line looks like the table
    Index fields = 0;          ///< number of fields of the table
    std::string example = {};  ///< the first of the lines
  };
  Title title() const;

 private:
  std::string_view record(Index skipped) const;
  char guess_separator(std::string_view record) const;
  std::vector<Index> count_fields(char separator) const;

  std::string path_;
  const TableOptions& options_;
  std::string text_;
  std::vector<std::string_view> lines_;  // lines of the text, without line ends
};

}  // namespace lockstep
