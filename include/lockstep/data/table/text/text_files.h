// The files of a table cut into chunks: byte ranges of one size, by the config only. A record belongs to the
// chunk that its first byte lies in. Each rank looks at its share of the ranges; put together in order, what
// they found gives the line in which each range begins, and whether that is inside quotes. From then on any
// chunk can be read by itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/byte_stream.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/text/row.h"

namespace lockstep {

/// The expectation that a text fails which is not UTF-8.
inline constexpr const char* kExpectedText =
    "UTF-8 text (data.encoding = \"windows-1252\" reads what Western programs write)";

struct TextFile {
  std::string path;
  Index file_bytes = 0;  ///< size on disk
  bool compressed = false;
  std::string encoding = {};   ///< encoding that it is decoded from; "": it is UTF-8
  bool old_line_ends = false;  ///< a carriage return alone ends a line, as on old Macs: it is read as '\n'
  Index begin = 0;  ///< the byte at which the table begins, behind a byte order mark and skipped lines
  Index skipped_lines = 0;  ///< lines before `begin`
};

/// Records that begin in `bytes` of the (unpacked) text of a file.
struct TextChunk {
  std::size_t file = 0;
  Range bytes;
  Index first_line = 1;      ///< number of the line that bytes.begin lies in
  bool inside = false;       ///< the first line that begins here begins inside quotes
  bool ends_inside = false;  ///< the first line behind the chunk begins inside quotes
  bool first_of_file = false;
};

struct TextFiles {
  std::vector<TextFile> files;
  std::vector<TextChunk> chunks;
  Dialect dialect = {};

  Index source_bytes() const;
  std::vector<std::string> paths() const;
};

struct ChunkCut {
  Index bytes = Index{1} << 20;  ///< size of a chunk; at least that of a byte order mark
  Dialect dialect = {};
  std::string encoding = "auto";  ///< encoding of the files; auto: as a byte order mark says, else UTF-8
  Index skip_lines = 0;           ///< lines above the table of each file
  bool may_be_empty = false;      ///< a file without any text has no records; else it is an error
};

/// Errors: DataError if the file cannot be read, is empty, is no text, or has fewer lines than are skipped;
/// ConfigError for an unknown encoding.
TextFile look_at_text_file(const std::string& path, const ChunkCut& cut);

/// The start of the text of a file behind what is skipped: at least `lines` lines, if there are as many in
/// the first `max_bytes`.
std::string first_text(const TextFile& file, Index lines, Index max_bytes);

/// *Collective.* Reads each file once, each rank a share of them. Errors, the same on all ranks: as of
/// look_at_text_file.
TextFiles index_text(std::span<const std::string> paths, const ChunkCut& cut, PeerGroup& peers);

/// The range of chunks that each rank reads: contiguous, of about as many bytes; those of a compressed file
/// stay together, since it can only be read from front to back.
std::vector<Range> share_text_chunks(const TextFiles& files, Index ranks);

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

/// Reads chunks; fastest in order. One thread uses it. `files` must outlive it.
class TextReader {
 public:
  explicit TextReader(const TextFiles& files) : files_(files) {}

  /// The records that begin in the chunk, whole; valid until the next call.
  /// Errors: DataError if the file is no longer what it was when it was indexed, or a record has no end.
  std::string_view read(const TextChunk& chunk);
  /// The line that the text of the last read() begins in.
  Index first_line() const { return first_line_; }

 private:
  void open(const TextChunk& chunk);
  Index find_end(const TextChunk& chunk, Index from);
  [[noreturn]] void fail_changed(const TextFile& file, Index found) const;
  [[noreturn]] void fail_unending(const TextChunk& chunk) const;

  const TextFiles& files_;
  std::optional<std::size_t> open_file_;
  std::optional<TextWindow> window_;
  Index first_line_ = 1;
};

}  // namespace lockstep
