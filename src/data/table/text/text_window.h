// The part of a text file at hand.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/data/byte_stream.h"
#include "lockstep/data/table/text/text_files.h"

namespace lockstep {

/// A piece of the (unpacked, decoded) text of a file, which moves forwards without reading a byte twice.
class TextWindow {
 public:
  static constexpr Index kLookAhead = Index{64} << 10;
  /// A longer record is one whose quote was never closed.
  static constexpr Index kMaxRecordBytes = Index{64} << 20;

  /// Errors: DataError, ConfigError as of ByteStream.
  explicit TextWindow(const TextFile& file)
      : file_(file), stream_(file.path, Packing::kDetect, file.encoding) {}

  /// Makes it hold [begin, end), or less at the end of the file; a piece that begins in or right behind the
  /// one at hand is read on. Errors: DataError.
  void hold(Range bytes);
  /// Reads on. False at the end of the file.
  bool extend(Index bytes);
  Range range() const { return held_; }
  /// Part of what is held.
  std::string_view text(Range bytes) const;

  /// The position behind the next line end; nothing if there is none before the end of the file, or in as
  /// many bytes as a record may have. Reads on.
  std::optional<Index> find_line_end(Index from);
  /// The lines that begin in `bytes`, whole; from and to their end if none begins there. It holds them then,
  /// and all of `bytes`. The byte before `bytes` is looked at: behind a line end, a line begins with them.
  Range lines_of(Range bytes);

  Index file_bytes() const { return stream_.file_bytes(); }
  std::string cut_off() const { return stream_.cut_off(); }

 private:
  const TextFile& file_;
  ByteStream stream_;
  Range held_;
  std::string buffer_;
};

}  // namespace lockstep
