// One record of a table as cells, read as far as someone wants to know.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/notation.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

// The fields of one record of a table, in the grammar of RFC 4180:
//
//   record = field { separator field }
//   field  = '"' { any but '"' | '""' } '"'  |  [ any but separator, '"' and line end { any but separator } ]
//
// with blanks around a field taken off, quoted ones keeping those inside. A quote that does not begin a field
// is a character.

/// How a table separates and quotes.
struct Dialect {
  /// Each of , tab ; | separates, for a text whose separator is not known yet.
  static constexpr char kAnySeparator = '\0';

  char separator = ',';
  bool quotes = true;                ///< false: a quote is a character like any other
  bool ends_with_separator = false;  ///< each record may end with a separator, behind which nothing stands

  bool operator==(const Dialect&) const = default;
};

/// Why a record cannot be used; who knows the file and the line adds them. Thrown, as it is rare.
struct BadRecord {
  Index column = 0;  ///< counted from 0; -1: the record as a whole
  std::string found;
  std::string expected;
};

/// Walks over the fields of records, one record after the other.
class FieldCursor {
 public:
  explicit FieldCursor(const Dialect& dialect) : dialect_(dialect) {}

  /// A record without its line end; must outlive the fields.
  void start(std::string_view record);

  /// No field is left.
  bool done() const { return done_; }
  /// How many fields are behind the cursor.
  Index column() const { return column_; }

  /// Takes the next field if all of it, without blanks or quotes, is a finite number. Else changes nothing.
  bool take_number(double& value) {
    double read = 0;
    const char* stop = parse_number_prefix(next_, end_, read);
    if (stop == nullptr || (stop != end_ && *stop != dialect_.separator)) return false;
    value = read;
    end_field(stop);
    return true;
  }
  /// Takes the next field; valid until start(). Requires !done(). Errors: BadRecord if its quotes are wrong.
  std::string_view take_text();

 private:
  std::string_view take_quoted();
  // The field goes up to `end`, which is a separator or the end of the record.
  void end_field(const char* end) {
    ++column_;
    done_ = end == end_;
    next_ = done_ ? end : end + 1;
  }

  Dialect dialect_;
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  bool done_ = true;
  Index column_ = 0;
  std::deque<std::string> unquoted_;  // fields of this record that held quotes
};

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
  bool short_year = false;         ///< the number is of a date whose year has two digits
  double number = 0;               ///< if is_number
  std::string_view text = {};      ///< the text, if Reading is kText or kEither; valid until the next record
  std::string_view unfolded = {};  ///< the text before it was folded; null: it was not

  /// The text as the file has it.
  std::string_view written() const { return unfolded.data() == nullptr ? text : unfolded; }
};

/// A column of a file.
struct RowColumn {
  Reading reading = Reading::kSkip;
  Index cell = 0;                               ///< position in the record of cells
  bool required = false;                        ///< a missing value makes the record bad
  bool one_of = false;                          ///< a record without a value in any such column is bad
  std::optional<NumberNotation> notation = {};  ///< how its numbers are written, if they are not plain
  std::optional<DateReading> date = {};         ///< its numbers are the days of dates
  std::vector<std::string> missing = {};        ///< texts that stand for a missing value in this column only
  std::vector<double> missing_numbers = {};     ///< numbers that do
  bool fold_case = false;                       ///< texts are read as fold_case() has them
};

/// Whether the text is a number, or a date, as the column writes them, which becomes that of the cell.
bool read_value(std::string_view text, const RowColumn& column, Cell& cell);

/// The text in small letters, with one blank for several and none around it. Of letters beyond ASCII: those
/// of the Latin-1 supplement, Greek and Cyrillic.
std::string fold_case(std::string_view text);

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
  void miss(Cell& cell, const RowColumn& column, std::string_view text, const char* expected) const;

  FieldCursor cursor_;
  bool ends_with_separator_;
  std::vector<RowColumn> columns_;
  std::vector<Cell> cells_;
  std::deque<std::string> folded_;  // texts of the record that were folded
  std::vector<std::string> missing_;
  std::vector<std::string> missing_in_categories_;
  std::uint64_t missing_sizes_ = 0;  // a bit for each of their lengths
  std::vector<Index> one_of_;        // cells of which one is to have a value
};

// The bounds of the records of a table. A record ends with its line, unless a quoted field is open there that
// is closed in a later line.
//
// A quote opens a field only at the field's start; elsewhere it is a character like any other (RFC 4180). A
// quote in a quoted field closes it if the field ends behind it, and two quotes there are one character. A
// quoted field that is never closed in this way ends with the line that it was opened in, so that a stray
// quote costs one record and not all lines up to the next quote.
//
// Whether an open field is ever closed stands in the first later line with an odd run of quotes: all lines
// before it have none but doubled ones, which open nothing for a reader that is outside of quotes either. So
// a part of a file needs two answers only, for a beginning outside and inside of quotes (LinePart), and any
// part can be looked at by itself.

/// The end of the first record of a text (with its line end); nothing if that needs more text than this.
/// `inside`: the text begins in a quoted field that is closed later. `whole`: no more text follows.
std::optional<Index> find_record_end(std::string_view text, const Dialect& rules, bool inside, bool whole);

/// The quotes behind some lines, by those before them.
enum class Quotes {
  kOutside,      ///< no quoted field is open
  kOpened,       ///< one is open that begins in these lines
  kStillOpen,    ///< the one that was open before them still is
  kNeverClosed,  ///< the one that was open before them is never closed: they begin outside of quotes
};

/// The quotes behind a part of a text, for both beginnings.
struct LinePart {
  Quotes from_outside = Quotes::kOutside;
  Quotes from_inside = Quotes::kStillOpen;
};
/// `lines`: whole lines, but that the last one may end with the text.
LinePart look_at_lines(std::string_view lines, const Dialect& rules);

/// The records of a text that begins with one and ends with one.
class RecordLines {
 public:
  /// `first_line`: number of the first line.
  RecordLines(std::string_view text, const Dialect& rules, Index first_line)
      : rest_(text), rules_(rules), next_line_(first_line) {}

  /// The next record, without its line end; false behind the last. Blank lines are no records.
  bool next(std::string_view& record);
  /// The lines that the record begins and ends in.
  Index line() const { return line_; }
  Index last_line() const { return next_line_ - 1; }

 private:
  std::string_view rest_;
  Dialect rules_;
  Index line_ = 0;
  Index next_line_;
};

}  // namespace lockstep
