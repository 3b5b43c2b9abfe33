// The files of a table cut into chunks: byte ranges of one size, by the config only. A record belongs to the
// chunk that its first byte lies in. In the first pass over the files each rank looks at its share of the
// ranges; put together in order, what they found gives the line in which each range begins, and whether that
// is inside quotes. From then on any chunk can be read by itself.
//
// The first pass already uses the records. A rank takes it that its share does not begin inside quotes, and
// knows all else about its chunks by itself; where that was wrong it reads its share once more.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/text/row.h"

namespace lockstep {

/// The expectation that a text fails which is not UTF-8.
inline constexpr const char* kExpectedText =
    "UTF-8 text (data.encoding = \"windows-1252\" reads what Western programs write)";

class TextWindow;

struct TextFile {
  std::string path;
  Index file_bytes = 0;  ///< size on disk
  bool compressed = false;
  std::string encoding = {};   ///< encoding that it is decoded from; "": it is UTF-8
  bool old_line_ends = false;  ///< a carriage return alone ends a line, as on old Macs: it is read as '\n'
  Index begin = 0;  ///< the byte at which the table begins, behind a byte order mark and skipped lines
  Index skipped_lines = 0;  ///< lines before `begin`
  /// The bytes that were read when it was looked at, for the first pass; null: nothing is left of them.
  std::shared_ptr<TextWindow> window = nullptr;

  template <class Message>
  void pass(Message& message) {
    message(path, file_bytes, compressed, encoding, old_line_ends, begin, skipped_lines);
  }
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
  std::vector<TextFile> files = {};
  Index chunk_bytes = Index{1} << 20;  ///< size of a chunk; at least that of a byte order mark
  Dialect dialect = {};
  bool has_chunks = false;  ///< the first pass has found them
  std::vector<TextChunk> chunks = {};

  Index source_bytes() const;
  std::vector<std::string> paths() const;
};

struct LookOptions {
  bool quotes = true;
  std::string encoding = "auto";  ///< encoding of the files; auto: as a byte order mark says, else UTF-8
  bool may_be_empty = false;      ///< a file without any text has no records; else it is an error
};

/// Reads the start of a file, which its window then holds. Errors: DataError if it cannot be read, is empty,
/// or is no text; ConfigError for an unknown encoding.
TextFile look_at_text_file(const std::string& path, const LookOptions& options);

/// The table begins behind so many lines. Errors: DataError if there are fewer.
void skip_lines(TextFile& file, Index lines);

/// The start of the text of a file that was looked at: at least `lines` lines, if there are as many in the
/// first `max_bytes`.
std::string first_text(const TextFile& file, Index lines, Index max_bytes);

/// *Collective.* Rank 0 looks at the files. Errors, the same on all ranks: as of look_at_text_file.
std::vector<TextFile> look_at_text_files(std::span<const std::string> paths, const LookOptions& options,
                                         PeerGroup& peers);
/// Windows of so many files are kept open.
inline constexpr std::size_t kOpenWindows = 8;

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
      : begin_(file.begin),
        old_line_ends_(file.old_line_ends),
        stream_(file.path, Packing::kDetect, file.encoding) {}

  /// Takes facts about the file, which were found in what it holds.
  void know(Index begin, bool old_line_ends);
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
  bool compressed() const { return stream_.compressed(); }
  std::string cut_off() const { return stream_.cut_off(); }

 private:
  Index begin_;  // of the table
  bool old_line_ends_;
  ByteStream stream_;
  Range held_;
  std::string buffer_;
};

/// A range of the bytes of a file, and the lines in it.
struct TextPart {
  std::size_t file;
  Range bytes;  ///< less of them where the file ends
  Index line_ends;
  LinePart lines;
};

/// Reads chunks; fastest in order. One thread uses it. `files` must outlive it.
class TextReader {
 public:
  explicit TextReader(const TextFiles& files) : files_(files) {}

  /// The records that begin in the chunk, whole; valid until the next call.
  /// Errors: DataError if the file is no longer what it was when it was looked at, or a record has no end.
  std::string_view read(const TextChunk& chunk);
  /// The line that the text of the last read() begins in.
  Index first_line() const { return first_line_; }

  /// Looks at these bytes of a file, behind which read() can go on; part.lines are the lines that begin in
  /// them. Errors: DataError.
  TextPart look(std::size_t file, Range bytes);
  /// Whether a quoted field that is open behind the lines of the part is closed in a later line. False, too,
  /// if it is not closed within what a record may have.
  bool closes_behind(const TextPart& part);
  /// Errors: DataError if the file ended in the middle of a compressed stream.
  void check_whole() const;

 private:
  void open(std::size_t file);
  Index find_end(const TextChunk& chunk, Index from);
  [[noreturn]] void fail_changed(const TextFile& file, Index found) const;
  [[noreturn]] void fail_unending(const TextChunk& chunk) const;

  const TextFiles& files_;
  std::optional<std::size_t> open_file_;
  std::shared_ptr<TextWindow> window_;
  Index first_line_ = 1;
};

/// Something that goes over the records of a text.
class TextPass {
 public:
  virtual ~TextPass() = default;
  /// The reader of its chunks.
  virtual TextReader& text() = 0;
  /// Takes the records of a chunk, number `chunk` of those of this rank's text so far. Errors: Error.
  virtual void take(const TextChunk& chunk, std::size_t number) = 0;
  /// Forgets all that it has taken.
  virtual void start_again() = 0;
  /// Whether what it has taken says in which lines records are.
  virtual bool names_lines() const = 0;
};

/// *Collective.* Lets the pass take this rank's share of the chunks, in order. The first pass over a text
/// finds them, and numbers those of a rank from 0 on. Errors, the same on all ranks: DataError if a file
/// cannot be read, or is not what it was; those of the pass.
void read_text(TextFiles& text, PeerGroup& peers, TextPass& pass);

}  // namespace lockstep
