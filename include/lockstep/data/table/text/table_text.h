// The text of a table: its files, how they separate fields, and the names of their columns.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/text_files.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

struct TableText {
  TextFiles text;
  bool header = false;                  ///< the first record of each file names the columns
  std::string header_text = {};         ///< text of that record
  std::vector<std::string> names = {};  ///< names of the columns; the second "x" is called "x.2"
  std::vector<std::string> warnings = {};

  template <class Message>
  void pass(Message& message) {
    message(text.files, text.dialect, header, header_text, names, warnings);
  }
};

/// The names, where one that was there before gets a number: the second "x" is called "x.2".
std::vector<std::string> distinct_names(std::span<const std::string> names);

/// *Collective.* Rank 0 reads the start of each file; the chunks of the text are found by the first pass over
/// it. `known`: the schema that the table will be read by, whose columns show whether there are the lines
/// above it that data.skip_lines leaves out; such a table may be empty, and has no names then. Errors, the
/// same on all ranks: DataError if a file cannot be read or holds no records.
TableText open_table_text(std::span<const std::string> paths, const TableOptions& options, PeerGroup& peers,
                          const TableSchema* known = nullptr);

/// Reads the records of a table, chunk by chunk, as cells. One thread uses it.
class TableReader {
 public:
  /// References must outlive the reader. `columns`: one for each column of the file.
  TableReader(const TableText& table, const std::vector<RowColumn>& columns, Index cells,
              const std::vector<std::string>& missing);

  TextReader& text() { return reader_; }

  /// Calls use(cells) for each record of the chunk, in order; where the record or its use is bad (BadRecord,
  /// whose column use() counts in cells), calls on_error(description) instead.
  /// Errors: DataError if a file has changed, or another file's header differs.
  template <class Use, class OnError>
  void for_each_record(const TextChunk& chunk, const Use& use, const OnError& on_error) {
    RecordLines lines = start(chunk);
    for (std::string_view record; lines.next(record);) {
      bool parsed = false;
      try {
        if (table_.header && record == table_.header_text) {
          throw BadRecord{-1, "the header once more",
                          "a record (were files put together with their headers?)"};
        }
        const std::span<const Cell> cells = parser_.parse(record);
        parsed = true;
        use(cells);
      } catch (const BadRecord& bad) {
        on_error(describe(bad, parsed, chunk, lines));
      }
    }
  }

 private:
  RecordLines start(const TextChunk& chunk);
  void check_header(std::string_view record, const TextChunk& chunk) const;
  std::string describe(const BadRecord& bad, bool parsed, const TextChunk& chunk,
                       const RecordLines& lines) const;

  const TableText& table_;
  const std::vector<RowColumn>& columns_;
  TextReader reader_;
  RowParser parser_;
};

// The first lines of a table: its separator, the names of its columns, and lines above it that are not its
// own.

/// The fields of a record. Errors: BadRecord.
std::vector<std::string> split_record(const Dialect& dialect, std::string_view record);

/// Whether the fields of a first record are names of columns where data.header is "auto": none is a number,
/// or all labels stand there, or all features of the schema of a model (null: none).
bool is_header(const std::vector<std::string>& fields, const TableOptions& options, const TableSchema* known);

/// Names for the columns, the fields of the first record if it is a header. Distinct: none is empty or used
/// twice. `renamed` gets a warning for each that changes.
std::vector<std::string> name_columns(const std::vector<std::string>& fields, bool header,
                                      std::vector<std::string>& renamed);

class FirstLines {
 public:
  /// Reads the first lines of a file that was looked at. data.skip_lines is not looked at.
  FirstLines(const TextFile& file, const TableOptions& options);

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

    /// Names these lines, and the key that leaves them out.
    std::string describe() const;
  };
  Title title() const;

  /// "the header has 3 names, and each record below it 4 fields: ...": one more, or one less; else "".
  std::string describe_header() const;

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
