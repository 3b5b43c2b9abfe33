// The last row of a terminal while files are read: "reading sales.csv: 34 %".
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/timer.h"
#include "lockstep/base/types.h"

namespace lockstep {

/// While one lives, a terminal shows what its thread has been reading for more than two seconds. Where
/// several threads or processes read one data set only one of them `shows` it. Those within the life of
/// another one of their thread do nothing.
class ReadingRow : NoCopy {
 public:
  explicit ReadingRow(bool shows = true);
  ~ReadingRow();

  /// For whoever reads: byte `position` of the data in a file of so many bytes was reached, or of what is
  /// unpacked from it, whose size is not known before the end.
  static void note(std::string_view path, Index position, Index file_bytes, bool compressed);
  static std::string text(std::string_view path, Index position, Index file_bytes, bool compressed);

 private:
  bool outermost_ = false;
  bool drawn_ = false;
  Stopwatch since_start_;
  Stopwatch since_drawn_;
};

}  // namespace lockstep
