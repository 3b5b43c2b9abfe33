// The fields of one record of a table, in the grammar of RFC 4180:
//
//   record = field { separator field }
//   field  = '"' { any but '"' | '""' } '"'  |  [ any but separator, '"' and line end { any but separator } ]
//
// with blanks around a field taken off, quoted ones keeping those inside. A quote that does not begin a field
// is a character.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {

/// How a table separates and quotes.
struct Dialect {
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
  [[noreturn]] void fail(std::string found, std::string expected) const;

  Dialect dialect_;
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  bool done_ = true;
  Index column_ = 0;
  std::deque<std::string> unquoted_;  // fields of this record that held quotes
};

}  // namespace lockstep
