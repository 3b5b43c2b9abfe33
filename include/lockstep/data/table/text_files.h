// The files of a table cut into chunks: byte ranges of one size, by the config only. A record belongs to the
// chunk that its first byte lies in. Each rank counts the quotes and lines of its share of the ranges; put
// together in order, the counts give the line in which each range begins, and whether it is inside quotes.
// From then on any chunk can be read by itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/byte_stream.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/lines.h"

namespace lockstep {

/// The expectation that a text fails which is not UTF-8.
inline constexpr const char* kExpectedText =
    "UTF-8 text (data.encoding = \"windows-1252\" reads what Western programs write)";

struct TextFile {
  std::string path;
  Index file_bytes = 0;  ///< size on disk
  bool compressed = false;
  std::string encoding = {};  ///< encoding that it is decoded from; "": it is UTF-8
};

/// Records that begin in `bytes` of the (unpacked) text of a file.
struct TextChunk {
  std::size_t file = 0;
  Range bytes;
  Index first_line = 1;  ///< number of the line that bytes.begin lies in
  bool inside = false;   ///< bytes.begin lies inside quotes
  bool first_of_file = false;
};

struct TextFiles {
  std::vector<TextFile> files;
  std::vector<TextChunk> chunks;
  bool quotes = true;

  Index source_bytes() const;
  std::vector<std::string> paths() const;
};

struct ChunkCut {
  Index bytes = Index{1} << 20;   ///< size of a chunk; at least that of a byte order mark
  bool quotes = true;             ///< a line end inside quotes ends no record
  std::string encoding = "auto";  ///< encoding of the files; auto: UTF-16 by a byte order mark, else UTF-8
};

/// *Collective.* Reads each file once, each rank a share of them. A byte order mark is left out.
/// Errors, the same on all ranks: DataError if a file cannot be read, is empty, or is no text; ConfigError
/// for an unknown encoding.
TextFiles index_text(std::span<const std::string> paths, const ChunkCut& cut, PeerGroup& peers);

/// The range of chunks that each rank reads: contiguous, of about as many bytes; those of a compressed file
/// stay together, since it can only be read from front to back.
std::vector<Range> share_text_chunks(const TextFiles& files, Index ranks);

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
  void hold(const TextChunk& chunk, Range bytes);
  Index find_first(const TextChunk& chunk) const;
  std::optional<Index> find_end(const TextChunk& chunk, Index first);
  std::string_view held(Range bytes) const;
  [[noreturn]] void fail_changed(const TextFile& file, Index found) const;

  const TextFiles& files_;
  std::optional<std::size_t> open_file_;
  std::optional<ByteStream> stream_;
  Range held_;  // range that buffer_ holds of the text of the open file
  std::string buffer_;
  Index first_line_ = 1;
};

}  // namespace lockstep
