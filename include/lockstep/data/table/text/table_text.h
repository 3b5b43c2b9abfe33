// The text of a table: its files, how they separate fields, and the names of their columns.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/text_files.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

struct TableText {
  TextFiles text;
  Dialect dialect;
  bool header = false;             ///< the first record of each file names the columns
  std::string header_text = {};    ///< text of that record
  std::vector<std::string> names;  ///< names of the columns; the second "x" is called "x.2"
  std::vector<std::string> warnings;
};

/// The names, where one that was there before gets a number: the second "x" is called "x.2".
std::vector<std::string> distinct_names(std::span<const std::string> names);

/// *Collective.* `known`: the schema that the table will be read by, whose columns show whether there are the
/// lines above it that data.skip_lines leaves out. Errors, the same on all ranks: DataError if a file cannot
/// be read or holds no records.
TableText open_table_text(std::span<const std::string> paths, const TableOptions& options, PeerGroup& peers,
                          const TableSchema* known = nullptr);

/// Reads the records of a table, chunk by chunk, as cells. One thread uses it.
class TableReader {
 public:
  /// References must outlive the reader. `columns`: one for each column of the file.
  TableReader(const TableText& table, const std::vector<RowColumn>& columns, Index cells,
              const std::vector<std::string>& missing);

  /// Calls use(cells) for each record of the chunk, in order; where the record or its use is bad (BadRecord,
  /// whose column use() counts in cells), calls on_error(description) instead.
  /// Errors: DataError if a file has changed, or another file's header differs.
  template <class Use, class OnError>
  void for_each_record(const TextChunk& chunk, const Use& use, const OnError& on_error) {
    RecordLines lines = start(chunk);
    for (std::string_view record; lines.next(record);) {
      bool parsed = false;
      try {
        if (table_.header && record == table_.header_text) throw_repeated_header();
        const std::span<const Cell> cells = parser_.parse(record);
        parsed = true;
        use(cells);
      } catch (const BadRecord& bad) {
        on_error(describe(bad, parsed, chunk, lines));
      }
    }
  }

 private:
  [[noreturn]] static void throw_repeated_header();
  RecordLines start(const TextChunk& chunk);
  void check_header(std::string_view record, const TextChunk& chunk) const;
  std::string describe(const BadRecord& bad, bool parsed, const TextChunk& chunk,
                       const RecordLines& lines) const;

  const TableText& table_;
  const std::vector<RowColumn>& columns_;
  TextReader reader_;
  RowParser parser_;
};

}  // namespace lockstep
