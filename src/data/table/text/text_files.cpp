// A table is read in chunks: ranges of bytes of one size, so that ranks can share the work without reading
// the whole. Where the first record of a chunk begins depends on all quotes before it. So index_text() has
// two steps. First each rank looks at the lines that begin in its share of the ranges, in units: a range of a
// plain file, or the whole of a compressed one, which can only be read from its start. Then what all ranks
// found (look_at_lines) is put together in order of the ranges, which gives each chunk its first line and
// whether its first line begins inside quotes.
//
// A chunk consists of the records that begin in its bytes. TextReader::read() therefore skips to the first
// line, and if that is inside quotes to the end of its record, and reads on past the end of the chunk to the
// end of the last record.
#include "lockstep/data/table/text/text_files.h"

#include <algorithm>
#include <array>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/format.h"
#include "lockstep/data/table/values/message.h"

namespace lockstep {
namespace {

// The first line end of a file is looked for in so many bytes.
constexpr Index kMaxFirstLine = Index{1} << 20;

// The length of a byte order mark at the start of a file. Errors: DataError if it is no text that can be
// read.
Index mark_bytes(const std::string& path, std::string_view start) {
  const std::string foreign = describe_foreign(path, start);
  if (!foreign.empty()) throw DataError("'{}' is no table of text but {}", path, foreign);
  return start.starts_with("\xef\xbb\xbf") ? 3 : 0;
}

// The encoding whose byte order mark comes next; "": none that has one.
std::string read_mark(ByteStream& stream) {
  std::array<char, 4> start{};
  const Index bytes = stream.read(std::as_writable_bytes(std::span(start)));
  return std::string(marked_encoding({start.data(), static_cast<std::size_t>(bytes)}));
}

// Whether the first line end outside of quotes is a carriage return alone; or one inside, if there is no
// other.
bool has_old_line_ends(TextWindow& window, bool quotes) {
  bool inside = false;
  bool only_old = true;
  bool found = false;
  for (Index at = window.range().begin; at < kMaxFirstLine; ++at) {
    if (at + 1 >= window.range().end) window.extend(TextWindow::kLookAhead);
    const std::string_view rest = window.text({at, window.range().end});
    if (rest.empty()) break;
    const char c = rest.front();
    inside ^= quotes && c == '"';
    if (c != '\r' && c != '\n') continue;
    const bool alone = c == '\r' && !rest.substr(1).starts_with('\n');
    if (!inside) return alone;
    found = true;
    only_old = only_old && alone;
  }
  return found && only_old;
}

void skip_lines(TextFile& file, Index lines) {
  TextWindow window(file);
  for (; file.skipped_lines < lines; ++file.skipped_lines) {
    window.hold({file.begin, file.begin + 1});
    const auto end = window.find_line_end(file.begin);
    if (!end) {
      const Index all = file.skipped_lines + (window.range().size() > 0 ? 1 : 0);
      throw DataError("'{}' has {} line{}, but data.skip_lines = {} leaves out more", file.path,
                      with_commas(all), all == 1 ? "" : "s", with_commas(lines));
    }
    file.begin = *end;
  }
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
  Index line_ends;
  LinePart lines;
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

  void look_at(const Unit& unit, MessageWriter& message) {
    const TextFile& file = files_[unit.file];
    if (open_ != unit.file) window_.emplace(file);
    open_ = unit.file;
    if (!file.compressed) {
      if (look_at_part(unit.file, unit.bytes, message)) return;
      throw DataError("'{}' became shorter while it was read: expected {} bytes, found {}", file.path,
                      with_commas(file.file_bytes), with_commas(window_->range().end));
    }
    Index begin = file.begin - file.begin % cut_.bytes;
    while (look_at_part(unit.file, {begin, begin + cut_.bytes}, message)) begin += cut_.bytes;
    const std::string note = window_->cut_off();
    if (!note.empty()) {
      throw DataError("'{}' is truncated{}; fetch or make the file again", file.path, note);
    }
  }

 private:
  // False if the file ends before the bytes do.
  bool look_at_part(std::size_t number, Range bytes, MessageWriter& message) {
    const TextFile& file = files_[number];
    const Index wanted_end = bytes.end;
    bytes.begin = std::max(bytes.begin, file.begin);
    if (bytes.begin >= bytes.end) return true;
    const Range lines = window_->lines_of(bytes);
    bytes.end = std::min(bytes.end, window_->range().end);
    if (bytes.size() > 0) {
      message.put(Part{.file = number,
                       .bytes = bytes,
                       .line_ends = std::ranges::count(window_->text(bytes), '\n'),
                       .lines = look_at_lines(window_->text(lines), cut_.dialect)});
    }
    return bytes.end == wanted_end;
  }

  const std::vector<TextFile>& files_;
  ChunkCut cut_;
  std::optional<std::size_t> open_;
  std::optional<TextWindow> window_;
};

// Chunks that begin inside quotes, if the field that is open there is closed in a later one. `open`: the
// chunk in which it was opened.
void begin_outside(std::vector<TextChunk>& chunks, std::size_t open) {
  for (std::size_t i = open + 1; i < chunks.size(); ++i) chunks[i].inside = false;
}

std::vector<TextChunk> put_together(const std::vector<Bytes>& messages) {
  std::vector<TextChunk> chunks;
  Index lines = 0;
  bool inside = false;
  std::size_t open = 0;
  for (const Bytes& message : messages) {
    for (MessageReader reader(message); !reader.done();) {
      const auto part = reader.take<Part>();
      const bool first = chunks.empty() || chunks.back().file != part.file;
      if (first) {
        if (inside) begin_outside(chunks, open);
        lines = 0;
        inside = false;
      }
      chunks.push_back({.file = part.file,
                        .bytes = part.bytes,
                        .first_line = lines + 1,
                        .inside = inside,
                        .first_of_file = first});
      lines += part.line_ends;
      if (inside && part.lines.closing == LinePart::Closing::kNone) continue;
      if (inside && part.lines.closing == LinePart::Closing::kNever) begin_outside(chunks, open);
      inside = chunks.back().inside ? part.lines.reopens : part.lines.opens;
      open = chunks.size() - 1;
    }
  }
  if (inside) begin_outside(chunks, open);
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) chunks[i].ends_inside = chunks[i + 1].inside;
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

TextFile look_at_text_file(const std::string& path, const ChunkCut& cut) {
  const bool detects = cut.encoding == "auto";
  const bool plain = detects || cut.encoding == "utf-8";
  ByteStream stream(path, Packing::kDetect, plain ? "" : cut.encoding);
  if (stream.file_bytes() == 0) {
    if (cut.may_be_empty) return {.path = path};
    throw DataError("'{}' is empty", path);
  }
  const std::string wide = detects ? read_mark(stream) : "";
  TextFile file{.path = path,
                .file_bytes = stream.file_bytes(),
                .compressed = !wide.empty() || stream.compressed(),
                .encoding = plain ? wide : cut.encoding};
  TextWindow window(file);
  window.hold({0, TextWindow::kLookAhead});
  file.begin = mark_bytes(path, window.text(window.range()));
  window.hold({file.begin, file.begin});
  const bool old = has_old_line_ends(window, cut.dialect.quotes);
  file.old_line_ends = old;
  skip_lines(file, cut.skip_lines);
  return file;
}

std::string first_text(const TextFile& file, Index lines, Index max_bytes) {
  TextWindow window(file);
  window.hold({file.begin, file.begin + std::min(TextWindow::kLookAhead, max_bytes)});
  while (window.range().size() < max_bytes && std::ranges::count(window.text(window.range()), '\n') < lines) {
    if (!window.extend(window.range().size())) break;
  }
  return std::string(window.text(window.range()));
}

TextFiles index_text(std::span<const std::string> paths, const ChunkCut& cut, PeerGroup& peers) {
  TextFiles text;
  text.dialect = cut.dialect;
  MessageWriter mine;
  peers.agree([&] {
    for (const std::string& path : paths) text.files.push_back(look_at_text_file(path, cut));
    const std::vector<Unit> units = units_of(text.files, cut.bytes);
    const auto weight = [&](Index unit) { return static_cast<double>(at(units, unit).bytes.size()); };
    const Range share = at(share_by_weight(std::ssize(units), peers.size(), weight), peers.rank());
    TextIndexer indexer(text.files, cut);
    for (Index unit = share.begin; unit < share.end; ++unit) indexer.look_at(at(units, unit), mine);
  });
  text.chunks = put_together(peers.all_gather(mine.bytes()));
  for (TextChunk& chunk : text.chunks) chunk.first_line += text.files[chunk.file].skipped_lines;
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

void TextWindow::hold(Range bytes) {
  if (bytes.begin < held_.begin || bytes.begin > held_.end) {
    stream_.go_to(bytes.begin);
    held_ = {bytes.begin, bytes.begin};
    buffer_.clear();
  }
  buffer_.erase(0, static_cast<std::size_t>(bytes.begin - held_.begin));
  held_.begin = bytes.begin;
  if (held_.end < bytes.end) extend(bytes.end - held_.end);
}

bool TextWindow::extend(Index bytes) {
  const std::size_t before = buffer_.size();
  buffer_.resize(before + static_cast<std::size_t>(bytes));
  const Index found = stream_.read(std::as_writable_bytes(std::span(buffer_).subspan(before)));
  buffer_.resize(before + static_cast<std::size_t>(found));
  held_.end += found;
  if (file_.old_line_ends) std::ranges::replace(std::span(buffer_).subspan(before), '\r', '\n');
  return found > 0;
}

std::string_view TextWindow::text(Range bytes) const {
  return std::string_view(buffer_).substr(static_cast<std::size_t>(bytes.begin - held_.begin),
                                          static_cast<std::size_t>(bytes.size()));
}

std::optional<Index> TextWindow::find_line_end(Index from) {
  for (Index step = kLookAhead;; step *= 2) {
    const Index end = held_.end;
    const std::size_t found = text({from, end}).find('\n');
    if (found != std::string_view::npos) return from + static_cast<Index>(found) + 1;
    if (end - from > kMaxRecordBytes || !extend(step)) return std::nullopt;
  }
}

Range TextWindow::lines_of(Range bytes) {
  const bool first = bytes.begin == file_.begin;
  const Range before{first ? bytes.begin : bytes.begin - 1, bytes.end};
  hold(before);
  bytes.end = std::min(bytes.end, held_.end);
  Index begin = bytes.begin;
  if (!first && bytes.begin < bytes.end) {
    const std::size_t found = text({before.begin, bytes.end}).find('\n');
    begin = found == std::string_view::npos ? bytes.end : before.begin + static_cast<Index>(found) + 1;
  }
  if (begin >= bytes.end) return {bytes.end, bytes.end};
  return {begin, find_line_end(bytes.end - 1).value_or(held_.end)};
}

void TextReader::fail_changed(const TextFile& file, Index found) const {
  throw DataError(
      "'{}' changed since it was opened: expected {} bytes, found {}; files must stay as they are until the "
      "run is over",
      file.path, with_commas(file.file_bytes), with_commas(found));
}

void TextReader::fail_unending(const TextChunk& chunk) const {
  throw DataError(
      "'{}': a record that begins at or after line {} is longer than {}; is a quote not closed? (data.quotes "
      "= false takes quotes as characters)",
      files_.files[chunk.file].path, with_commas(first_line_), human_bytes(TextWindow::kMaxRecordBytes));
}

// Opens the file of the chunk.
void TextReader::open(const TextChunk& chunk) {
  if (open_file_ == chunk.file) return;
  const TextFile& file = files_.files[chunk.file];
  window_.emplace(file);
  if (window_->file_bytes() != file.file_bytes) fail_changed(file, window_->file_bytes());
  open_file_ = chunk.file;
}

// The end of the record that is open at `from`, behind the lines of the chunk.
Index TextReader::find_end(const TextChunk& chunk, Index from) {
  bool whole = false;
  for (Index step = TextWindow::kLookAhead;; step *= 2) {
    const Range ahead{from, window_->range().end};
    if (const auto end = find_record_end(window_->text(ahead), files_.dialect, true, whole))
      return from + *end;
    if (ahead.size() > TextWindow::kMaxRecordBytes) fail_unending(chunk);
    whole = !window_->extend(step);
  }
}

std::string_view TextReader::read(const TextChunk& chunk) {
  open(chunk);
  const TextFile& file = files_.files[chunk.file];
  const Range lines = window_->lines_of(chunk.bytes);
  if (window_->range().end < chunk.bytes.end) fail_changed(file, window_->range().end);
  first_line_ = chunk.first_line;
  if (lines.size() > TextWindow::kMaxRecordBytes + chunk.bytes.size()) fail_unending(chunk);
  Index first = lines.begin;
  if (chunk.inside && lines.size() > 0) {
    const auto end = find_record_end(window_->text(lines), files_.dialect, true, !chunk.ends_inside);
    first = lines.begin + end.value_or(lines.size());
  }
  if (first >= lines.end) return {};
  first_line_ += std::ranges::count(window_->text({chunk.bytes.begin, first}), '\n');
  return window_->text({first, chunk.ends_inside ? find_end(chunk, lines.end) : lines.end});
}

}  // namespace lockstep
