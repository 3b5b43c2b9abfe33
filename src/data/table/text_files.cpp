// A table is read in chunks: ranges of bytes of one size, so that ranks can share the work without reading
// the whole. Whether a byte lies inside quotes depends on all quotes before it. So index_text() has two
// steps. First each rank counts quotes and lines in its share of the ranges, in units: a range of a plain
// file, or the whole of a compressed one, which can only be read from its start. Then the counts of all ranks
// are added up in order of the ranges, which gives each chunk its first line and whether it begins inside
// quotes.
//
// A chunk consists of the records that begin in its bytes. TextReader::read() therefore skips to the first
// line end outside quotes, unless the chunk begins the file, and reads on past the end of the chunk to the
// end of the last record. The byte before the chunk is looked at, too: if it is a line end, a record begins
// with the chunk. A record longer than kMaxRecordBytes is taken as an unclosed quote.
#include "lockstep/data/table/text_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "../foreign_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/message.h"

namespace lockstep {
namespace {

constexpr Index kLookAhead = Index{64} << 10;
// A longer record is one whose quote was never closed.
constexpr Index kMaxRecordBytes = Index{64} << 20;

Index read_text(ByteStream& stream, std::string& text, Index count) {
  const std::size_t before = text.size();
  text.resize(before + static_cast<std::size_t>(count));
  const Index found = stream.read(std::as_writable_bytes(std::span(text).subspan(before)));
  text.resize(before + static_cast<std::size_t>(found));
  return found;
}

// The length of a byte order mark at the start of a file. Errors: DataError if it is no text that can be
// read.
Index mark_bytes(const std::string& path, std::string_view start) {
  const std::string foreign = describe_foreign(path, start);
  if (!foreign.empty()) throw DataError(fmt::format("'{}' is no table of text but {}", path, foreign));
  return start.starts_with("\xef\xbb\xbf") ? 3 : 0;
}

// Whether the byte order mark of UTF-16 comes next.
bool has_wide_mark(ByteStream& stream) {
  std::array<std::byte, 2> start{};
  if (stream.read(start) < std::ssize(start)) return false;
  const auto first = std::to_integer<int>(start[0]);
  const auto second = std::to_integer<int>(start[1]);
  return (first == 0xff && second == 0xfe) || (first == 0xfe && second == 0xff);
}

TextFile look_at_file(const std::string& path, const std::string& encoding) {
  const bool detects = encoding == "auto";
  const bool plain = detects || encoding == "utf-8";
  ByteStream stream(path, Packing::kDetect, plain ? "" : encoding);
  if (stream.file_bytes() == 0) throw DataError(fmt::format("'{}' is empty", path));
  const bool wide = detects && has_wide_mark(stream);
  return {.path = path,
          .file_bytes = stream.file_bytes(),
          .compressed = wide || stream.compressed(),
          .encoding = wide    ? "UTF-16"
                      : plain ? ""
                              : encoding};
}

// A unit of work of one rank: a range of a file, or the whole of a compressed one.
struct Unit {
  std::size_t file = 0;
  Range bytes;
};

std::vector<Unit> units_of(const std::vector<TextFile>& files, Index chunk_bytes) {
  std::vector<Unit> units;
  for (std::size_t file = 0; file < files.size(); ++file) {
    const Index total = files[file].file_bytes;
    const Index step = files[file].compressed ? total : chunk_bytes;
    for (Index begin = 0; begin < total; begin += step) {
      units.push_back({.file = file, .bytes = {begin, std::min(begin + step, total)}});
    }
  }
  return units;
}

struct Part {
  std::size_t file;
  Range bytes;
  LineCounts counts;
};

// Contiguous runs whose shares of the weight differ little.
template <class Weight>
std::vector<Range> share_by_weight(Index count, Index ranks, const Weight& weight) {
  double total = 0;
  for (Index i = 0; i < count; ++i) total += weight(i);
  std::vector<Range> shares;
  Index next = 0;
  double done = 0;
  for (Index rank = 0; rank < ranks; ++rank) {
    const Index begin = next;
    const double goal = total * static_cast<double>(rank + 1) / static_cast<double>(ranks);
    while (next < count && (rank + 1 == ranks || done + weight(next) / 2 < goal)) done += weight(next++);
    shares.push_back({begin, next});
  }
  return shares;
}

class TextIndexer {
 public:
  TextIndexer(const std::vector<TextFile>& files, const ChunkCut& cut) : files_(files), cut_(cut) {}

  void count(const Unit& unit, MessageWriter& message) {
    const TextFile& file = files_[unit.file];
    if (open_ != unit.file) stream_.emplace(file.path, Packing::kDetect, file.encoding);
    open_ = unit.file;
    if (!file.compressed) {
      stream_->go_to(unit.bytes.begin);
      count_part(unit.file, unit.bytes.begin, unit.bytes.size(), message);
      return;
    }
    for (Index begin = 0;; begin += cut_.bytes) {
      if (count_part(unit.file, begin, cut_.bytes, message) < cut_.bytes) break;
    }
    const std::string note = stream_->cut_off();
    if (!note.empty()) {
      throw DataError(fmt::format("'{}' is truncated{}; fetch or make the file again", file.path, note));
    }
  }

 private:
  Index count_part(std::size_t file, Index begin, Index wanted, MessageWriter& message) {
    text_.clear();
    const Index found = read_text(*stream_, text_, wanted);
    const TextFile& read = files_[file];
    if (!read.compressed && found < wanted) {
      throw DataError(fmt::format("'{}' became shorter while it was read: expected {} bytes, found {}",
                                  read.path, with_commas(read.file_bytes), with_commas(begin + found)));
    }
    const Index mark = begin == 0 ? mark_bytes(read.path, text_) : 0;
    if (found > mark) {
      LineCounts counts = count_lines(text_);
      if (!cut_.quotes) counts.quotes = 0;
      message.put(Part{.file = file, .bytes = {begin + mark, begin + found}, .counts = counts});
    }
    return found;
  }

  const std::vector<TextFile>& files_;
  ChunkCut cut_;
  std::optional<std::size_t> open_;
  std::optional<ByteStream> stream_;
  std::string text_;
};

std::vector<TextChunk> put_together(const std::vector<Bytes>& messages) {
  std::vector<TextChunk> chunks;
  Index lines = 0;
  Index quotes = 0;
  for (const Bytes& message : messages) {
    for (MessageReader reader(message); !reader.done();) {
      const auto part = reader.take<Part>();
      const bool first = chunks.empty() || chunks.back().file != part.file;
      if (first) lines = quotes = 0;
      chunks.push_back({.file = part.file,
                        .bytes = part.bytes,
                        .first_line = lines + 1,
                        .inside = quotes % 2 != 0,
                        .first_of_file = first});
      lines += part.counts.lines;
      quotes += part.counts.quotes;
    }
  }
  return chunks;
}

}  // namespace

Index TextFiles::source_bytes() const {
  Index sum = 0;
  for (const TextFile& file : files) sum += file.file_bytes;
  return sum;
}

std::vector<std::string> TextFiles::paths() const {
  std::vector<std::string> paths;
  for (const TextFile& file : files) paths.push_back(file.path);
  return paths;
}

TextFiles index_text(std::span<const std::string> paths, const ChunkCut& cut, PeerGroup& peers) {
  TextFiles text;
  text.quotes = cut.quotes;
  MessageWriter mine;
  peers.agree([&] {
    for (const std::string& path : paths) text.files.push_back(look_at_file(path, cut.encoding));
    const std::vector<Unit> units = units_of(text.files, cut.bytes);
    const auto weight = [&](Index unit) { return static_cast<double>(at(units, unit).bytes.size()); };
    const Range share = at(share_by_weight(std::ssize(units), peers.size(), weight), peers.rank());
    TextIndexer indexer(text.files, cut);
    for (Index unit = share.begin; unit < share.end; ++unit) {
      indexer.count(at(units, unit), mine);
    }
  });
  text.chunks = put_together(peers.all_gather(mine.bytes()));
  return text;
}

std::vector<Range> share_text_chunks(const TextFiles& text, Index ranks) {
  std::vector<Range> runs;  // runs of chunks that stay together
  for (Index i = 0; i < std::ssize(text.chunks); ++i) {
    const TextChunk& chunk = at(text.chunks, i);
    if (text.files[chunk.file].compressed && !chunk.first_of_file) {
      ++runs.back().end;
    } else {
      runs.push_back({i, i + 1});
    }
  }
  const auto bytes = [&](Index run) {
    double sum = 0;
    const Range chunks = at(runs, run);
    for (Index i = chunks.begin; i < chunks.end; ++i) {
      sum += static_cast<double>(at(text.chunks, i).bytes.size());
    }
    return sum;
  };
  std::vector<Range> shares;
  const auto count = std::ssize(text.chunks);
  for (const Range share : share_by_weight(std::ssize(runs), ranks, bytes)) {
    const auto border = [&](Index run) { return run < std::ssize(runs) ? at(runs, run).begin : count; };
    shares.push_back({border(share.begin), border(share.end)});
  }
  return shares;
}

void TextReader::fail_changed(const TextFile& file, Index found) const {
  throw DataError(fmt::format(
      "'{}' changed since it was opened: expected {} bytes, found {}; files must stay as they are until the "
      "run is over",
      file.path, with_commas(file.file_bytes), with_commas(found)));
}

// Makes buffer_ hold the bytes of the chunk's file from bytes.begin to bytes.end, or to the end of the file.
// Bytes that the last chunk looked at beyond its end are not read again: a compressed file could only be read
// from its start.
void TextReader::hold(const TextChunk& chunk, Range bytes) {
  const TextFile& file = files_.files[chunk.file];
  if (open_file_ != chunk.file) {
    stream_.emplace(file.path, Packing::kDetect, file.encoding);
    if (stream_->file_bytes() != file.file_bytes) fail_changed(file, stream_->file_bytes());
    open_file_ = chunk.file;
    held_ = {};
    buffer_.clear();
  }
  if (bytes.begin < held_.begin || bytes.begin > held_.end) {
    stream_->go_to(bytes.begin);
    held_ = {bytes.begin, bytes.begin};
    buffer_.clear();
  }
  buffer_.erase(0, static_cast<std::size_t>(bytes.begin - held_.begin));
  held_.begin = bytes.begin;
  if (held_.end < bytes.end) held_.end += read_text(*stream_, buffer_, bytes.end - held_.end);
}

std::string_view TextReader::held(Range bytes) const {
  return std::string_view(buffer_).substr(static_cast<std::size_t>(bytes.begin - held_.begin),
                                          static_cast<std::size_t>(bytes.size()));
}

// The offset at which the first record of the chunk begins; behind its end if none does.
Index TextReader::find_first(const TextChunk& chunk) const {
  if (chunk.first_of_file) return chunk.bytes.begin;
  // The byte before may be the line end that the chunk's first byte comes after.
  const Range bytes{chunk.bytes.begin - 1, chunk.bytes.end};
  bool inside = chunk.inside;
  const std::string_view text = held(bytes);
  if (text.front() == '"' && files_.quotes) inside = !inside;
  return bytes.begin + find_line_end(text, files_.quotes, inside).value_or(text.size());
}

// The end of the record that the chunk's last byte belongs to; none if it has no end.
std::optional<Index> TextReader::find_end(const TextChunk& chunk, Index first) {
  Index from = chunk.bytes.end - 1;
  bool inside = files_.quotes && std::ranges::count(held({first, from}), '"') % 2 != 0;
  while (from - chunk.bytes.end < kMaxRecordBytes) {
    const Index held_end = held_.end;
    if (const auto end = find_line_end(held({from, held_end}), files_.quotes, inside)) return from + *end;
    from = held_end;
    hold(chunk, {held_.begin, held_end + kLookAhead});
    if (held_.end == held_end) return held_end;
  }
  return std::nullopt;
}

std::string_view TextReader::read(const TextChunk& chunk) {
  const Index before = chunk.first_of_file ? 0 : 1;
  hold(chunk, {chunk.bytes.begin - before, chunk.bytes.end});
  if (held_.end < chunk.bytes.end) fail_changed(files_.files[chunk.file], held_.end);
  const Index first = find_first(chunk);
  first_line_ = chunk.first_line;
  if (first >= chunk.bytes.end) return {};
  first_line_ += std::ranges::count(held({chunk.bytes.begin, first}), '\n');
  const std::optional<Index> end = find_end(chunk, first);
  if (!end) {
    throw DataError(fmt::format(
        "'{}': a record that begins at or after line {} is longer than {}; is a quote not closed? "
        "(data.quotes = false takes quotes as characters)",
        files_.files[chunk.file].path, with_commas(first_line_),
        human_bytes(static_cast<double>(kMaxRecordBytes))));
  }
  return held({first, *end});
}

}  // namespace lockstep
