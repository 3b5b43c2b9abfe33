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
#pragma once

#include <optional>
#include <string_view>

#include "lockstep/base/types.h"

namespace lockstep {

/// How fields are told apart, as far as the ends of records depend on it.
struct LineRules {
  /// Each of , tab ; | separates, for a text whose separator is not known yet.
  static constexpr char kAnySeparator = '\0';

  char separator = ',';
  bool quotes = true;  ///< there may be any
};

/// The end of the first record of a text (with its line end); nothing if that needs more text than this.
/// `inside`: the text begins in a quoted field that is closed later. `whole`: no more text follows.
std::optional<Index> find_record_end(std::string_view text, const LineRules& rules, bool inside, bool whole);

/// The effect of the lines of a part of a text on quoted fields.
struct LinePart {
  /// The first event for a field that is open where the part begins.
  enum class Closing {
    kNone,    ///< it is open at the end, too
    kClosed,  ///< a quote closes it
    kNever,   ///< it turns out to be never closed: the part begins outside of quotes
  };
  bool opens = false;  ///< a field is open at the end, if none was at the beginning
  Closing closing = Closing::kNone;
  bool reopens = false;  ///< another field is open at the end, with kClosed
};
/// `lines`: whole lines, but that the last one may end with the text.
LinePart look_at_lines(std::string_view lines, const LineRules& rules);

/// The records of a text that begins with one and ends with one.
class RecordLines {
 public:
  /// `first_line`: number of the first line.
  RecordLines(std::string_view text, const LineRules& rules, Index first_line)
      : rest_(text), rules_(rules), next_line_(first_line) {}

  /// The next record, without its line end; false behind the last. Blank lines are no records.
  bool next(std::string_view& record);
  /// The lines that the record begins and ends in.
  Index line() const { return line_; }
  Index last_line() const { return next_line_ - 1; }

 private:
  std::string_view rest_;
  LineRules rules_;
  Index line_ = 0;
  Index next_line_;
};

}  // namespace lockstep
