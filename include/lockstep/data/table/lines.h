// The bounds of the records of a table. A line end inside quotes does not end a record, so whether one does
// depends on how many quotes stand before it: an even number is outside. That holds for RFC 4180 with its
// doubled quotes too, and it lets any part of a file be cut once the quotes before it are counted.
#pragma once

#include <optional>
#include <string_view>

#include "lockstep/base/types.h"

namespace lockstep {

/// Counts of a part of a text.
struct LineCounts {
  Index quotes = 0;
  Index lines = 0;  ///< line ends, inside quotes too
};
LineCounts count_lines(std::string_view text);

/// The position behind the first line end outside quotes; none if there is no such end. `inside`: the text
/// begins inside quotes; afterwards: it ends inside quotes, if there is no such end. `quotes`: there may be
/// any.
std::optional<Index> find_line_end(std::string_view text, bool quotes, bool& inside);

/// The records of a text that begins with one.
class RecordLines {
 public:
  /// `quotes`: a line end inside them ends no record. `first_line`: number of the first line.
  RecordLines(std::string_view text, bool quotes, Index first_line)
      : rest_(text), quotes_(quotes), next_line_(first_line) {}

  /// The next record, without its line end; false behind the last. Blank lines are no records.
  bool next(std::string_view& record);
  /// The line that the record began in.
  Index line() const { return line_; }
  /// The last record is still inside quotes at the end of the text.
  bool unclosed() const { return unclosed_; }

 private:
  std::string_view rest_;
  bool quotes_;
  bool unclosed_ = false;
  Index line_ = 0;
  Index next_line_;
};

}  // namespace lockstep
