// All quotes before a chunk decide where its first record begins. In the first pass each rank looks at the
// lines (look_at_lines) that begin in its share of the ranges, in units: a range of a plain file, or the
// whole of a compressed one, which can only be read from its start.
//
// A chunk consists of the records that begin in its bytes. TextReader::read() therefore skips to the first
// line, and if that is inside quotes to the end of its record, and reads on past the end of the chunk to the
// end of the last record.
#include "lockstep/data/table/text/text_files.h"

#include <algorithm>
#include <numeric>

#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/foreign.h"
#include "lockstep/data/message.h"

namespace lockstep {
namespace {

// The first line end of a file is looked for in so many bytes.
constexpr Index kMaxFirstLine = Index{1} << 20;

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

// A unit of work of one rank: a range of a file, or the whole of a compressed one.
struct Unit {
  std::size_t file = 0;
  Range bytes;
};

// Contiguous runs whose shares of the weight differ little.
std::vector<Range> share_by_weight(const std::vector<double>& weights, Index ranks) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto count = std::ssize(weights);
  std::vector<Range> shares;
  Index next = 0;
  double done = 0;
  for (Index rank = 0; rank < ranks; ++rank) {
    const Index begin = next;
    const double goal = total * static_cast<double>(rank + 1) / static_cast<double>(ranks);
    while (next < count && (rank + 1 == ranks || done + at(weights, next) / 2 < goal))
      done += at(weights, next++);
    shares.push_back({begin, next});
  }
  return shares;
}

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
      const auto part = reader.take<TextPart>();
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
      Quotes behind = inside ? part.lines.from_inside : part.lines.from_outside;
      if (behind == Quotes::kStillOpen) continue;
      if (behind == Quotes::kNeverClosed) {
        begin_outside(chunks, open);
        behind = part.lines.from_outside;
      }
      inside = behind == Quotes::kOpened;
      open = chunks.size() - 1;
    }
  }
  if (inside) begin_outside(chunks, open);
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) chunks[i].ends_inside = chunks[i + 1].inside;
  return chunks;
}

// The first pass of one rank.
class FirstPass {
 public:
  FirstPass(TextFiles& text, PeerGroup& peers, TextPass& pass) : text_(text), peers_(peers), pass_(pass) {}

  void run() {
    MessageWriter mine;
    peers_.agree([&] {
      std::vector<Unit> units;
      std::vector<double> weights;
      for (std::size_t file = 0; file < text_.files.size(); ++file) {
        const Index total = text_.files[file].file_bytes;
        const Index step = text_.files[file].compressed ? total : text_.chunk_bytes;
        for (Index begin = 0; begin < total; begin += step) {
          units.push_back({.file = file, .bytes = {begin, std::min(begin + step, total)}});
          weights.push_back(static_cast<double>(units.back().bytes.size()));
        }
      }
      const Range share = at(share_by_weight(weights, peers_.size()), peers_.rank());
      for (Index unit = share.begin; unit < share.end; ++unit) look_at(at(units, unit), mine);
    });
    const std::vector<Bytes> messages = peers_.all_gather(mine.bytes());
    Index before = 0;
    for (Index rank = 0; rank < peers_.rank(); ++rank)
      before += std::ssize(at(messages, rank)) / Index{sizeof(TextPart)};
    text_.chunks = put_together(messages);
    for (TextChunk& chunk : text_.chunks) chunk.first_line += text_.files[chunk.file].skipped_lines;
    for (TextFile& file : text_.files) file.window.reset();
    text_.has_chunks = true;
    peers_.agree([&] { compare({before, before + std::ssize(taken_)}); });
  }

 private:
  void look_at(const Unit& unit, MessageWriter& message) {
    const TextFile& file = text_.files[unit.file];
    Range bytes = unit.bytes;
    if (file.compressed) {
      const Index begin = file.begin - file.begin % text_.chunk_bytes;
      bytes = {begin, begin + text_.chunk_bytes};
    }
    for (;; bytes = {bytes.end, bytes.end + text_.chunk_bytes}) {
      throw_if_stopped();
      const Range wanted{std::max(bytes.begin, file.begin), bytes.end};
      if (!wanted.empty()) {
        const TextPart part = pass_.text().look(unit.file, wanted);
        if (part.bytes.size() > 0) {
          message.put(part);
          take(part);
        }
        if (part.bytes.end < wanted.end) break;
      }
      if (!file.compressed) return;
    }
    if (file.compressed) return pass_.text().check_whole();
    throw DataError("'{}' became shorter while it was read: expected {} bytes", file.path,
                    with_commas(file.file_bytes));
  }

  void take(const TextPart& part) {
    const bool first = part.bytes.begin == text_.files[part.file].begin;
    const TextChunk* const before = taken_.empty() || first ? nullptr : &taken_.back();
    const bool inside =
        before != nullptr && before->ends_inside && part.lines.from_inside != Quotes::kNeverClosed;
    const Quotes behind = inside ? part.lines.from_inside : part.lines.from_outside;
    const bool opens = behind == Quotes::kOpened && pass_.text().closes_behind(part);
    taken_.push_back({.file = part.file,
                      .bytes = part.bytes,
                      .first_line = before == nullptr ? text_.files[part.file].skipped_lines + 1 : next_line_,
                      .inside = inside,
                      .ends_inside = behind == Quotes::kStillOpen || opens,
                      .first_of_file = first});
    next_line_ = taken_.back().first_line + part.line_ends;
    if (failed_) return;
    try {
      pass_.take(taken_.back(), taken_.size() - 1);
    } catch (const Error&) {
      // It may be the end of a file that is cut off, or the share begins otherwise, or in another line.
      if (taken_.front().first_of_file && !text_.files[part.file].compressed) throw;
      failed_ = true;
    }
  }

  // Takes the share once more if its chunks are not those that were taken.
  void compare(Range mine) {
    const auto same = [](const TextChunk& a, const TextChunk& b) {
      return a.inside == b.inside && a.ends_inside == b.ends_inside;
    };
    const auto found =
        std::span<const TextChunk>(text_.chunks)
            .subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size()));
    const bool lines =
        mine.empty() || found.front().first_line == taken_.front().first_line || !pass_.names_lines();
    if (!failed_ && lines && std::ranges::equal(found, taken_, same)) return;
    pass_.start_again();
    for (std::size_t i = 0; i < found.size(); ++i) {
      throw_if_stopped();
      pass_.take(found[i], i);
    }
  }

  TextFiles& text_;
  PeerGroup& peers_;
  TextPass& pass_;
  std::vector<TextChunk> taken_;  // as this rank takes them to be
  Index next_line_ = 1;
  bool failed_ = false;
};

}  // namespace

void read_text(TextFiles& text, PeerGroup& peers, TextPass& pass) {
  if (!text.has_chunks) return FirstPass(text, peers, pass).run();
  peers.agree([&] {
    const Range mine = at(share_text_chunks(text, peers.size()), peers.rank());
    for (Index i = mine.begin; i < mine.end; ++i) {
      throw_if_stopped();
      pass.take(at(text.chunks, i), static_cast<std::size_t>(i));
    }
  });
}

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

TextFile look_at_text_file(const std::string& path, const LookOptions& options) {
  const bool detects = options.encoding == "auto";
  const bool plain = detects || options.encoding == "utf-8";
  TextFile file{.path = path, .encoding = plain ? "" : options.encoding};
  file.window = std::make_shared<TextWindow>(file);
  file.file_bytes = file.window->file_bytes();
  if (file.file_bytes == 0) {
    if (options.may_be_empty) return {.path = path};
    throw DataError("'{}' is empty", path);
  }
  constexpr Index kFirstLook = 4096;
  file.window->hold({0, kFirstLook});
  const auto start = [&file] { return file.window->text(file.window->range()); };
  if (detects) file.encoding = marked_encoding(start());
  if (detects && !file.encoding.empty()) {
    file.window = std::make_shared<TextWindow>(file);
    file.window->hold({0, kFirstLook});
  }
  file.compressed = file.window->compressed();
  const std::string foreign = describe_foreign(path, start());
  error_if<DataError>(!foreign.empty(), "'{}' is no table of text but {}", path, foreign);
  file.begin = start().starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  file.window->hold({file.begin, file.begin});
  file.old_line_ends = has_old_line_ends(*file.window, options.quotes);
  file.window->know(file.begin, file.old_line_ends);
  return file;
}

void skip_lines(TextFile& file, Index lines) {
  if (file.file_bytes == 0) return;
  for (; file.skipped_lines < lines; ++file.skipped_lines) {
    const auto end = file.window->find_line_end(file.begin);
    if (!end) {
      const Index all = file.skipped_lines + (file.window->range().end > file.begin ? 1 : 0);
      throw DataError("'{}' has {} line{}, but data.skip_lines = {} leaves out more", file.path,
                      with_commas(all), all == 1 ? "" : "s", with_commas(lines));
    }
    file.begin = *end;
  }
  file.window->know(file.begin, file.old_line_ends);
}

std::string first_text(const TextFile& file, Index lines, Index max_bytes) {
  if (!file.window) return "";
  TextWindow& window = *file.window;
  window.hold({file.begin, file.begin + std::min(TextWindow::kLookAhead, max_bytes)});
  const auto text = [&] { return window.text({file.begin, window.range().end}); };
  while (std::ssize(text()) < max_bytes && std::ranges::count(text(), '\n') < lines) {
    if (!window.extend(std::ssize(text()))) break;
  }
  return std::string(text());
}

std::vector<TextFile> look_at_text_files(std::span<const std::string> paths, const LookOptions& options,
                                         PeerGroup& peers) {
  return from_first_rank<std::vector<TextFile>>(peers, [&] {
    std::vector<TextFile> files;
    for (const std::string& path : paths) {
      files.push_back(look_at_text_file(path, options));
      if (files.size() > kOpenWindows) files.back().window.reset();
    }
    return files;
  });
}

std::vector<Range> share_text_chunks(const TextFiles& text, Index ranks) {
  std::vector<Index> borders;  // of runs of chunks that stay together
  std::vector<double> bytes;   // of each run
  for (Index i = 0; i < std::ssize(text.chunks); ++i) {
    const TextChunk& chunk = at(text.chunks, i);
    if (!text.files[chunk.file].compressed || chunk.first_of_file) {
      borders.push_back(i);
      bytes.push_back(0);
    }
    bytes.back() += static_cast<double>(chunk.bytes.size());
  }
  borders.push_back(std::ssize(text.chunks));
  std::vector<Range> shares = share_by_weight(bytes, ranks);
  for (Range& share : shares) share = {at(borders, share.begin), at(borders, share.end)};
  return shares;
}

void TextWindow::know(Index begin, bool old_line_ends) {
  begin_ = begin;
  if (old_line_ends && !old_line_ends_) std::ranges::replace(buffer_, '\r', '\n');
  old_line_ends_ = old_line_ends;
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
  if (old_line_ends_) std::ranges::replace(std::span(buffer_).subspan(before), '\r', '\n');
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
  const bool first = bytes.begin == begin_;
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

void TextReader::open(std::size_t number) {
  if (open_file_ == number) return;
  const TextFile& file = files_.files[number];
  window_ = file.window ? file.window : std::make_shared<TextWindow>(file);
  if (window_->file_bytes() != file.file_bytes) fail_changed(file, window_->file_bytes());
  open_file_ = number;
}

TextPart TextReader::look(std::size_t file, Range bytes) {
  open(file);
  const Range lines = window_->lines_of(bytes);
  bytes.end = std::max(bytes.begin, std::min(bytes.end, window_->range().end));
  TextPart part{.file = file, .bytes = bytes, .line_ends = 0, .lines = {}};
  if (bytes.empty()) return part;
  part.line_ends = std::ranges::count(window_->text(bytes), '\n');
  part.lines = look_at_lines(window_->text(lines), files_.dialect);
  return part;
}

bool TextReader::closes_behind(const TextPart& part) {
  Index begin = window_->lines_of(part.bytes).end;
  const Index most = begin + TextWindow::kMaxRecordBytes;
  while (begin < most) {
    const Index end = window_->find_line_end(begin).value_or(window_->range().end);
    if (end == begin) return false;
    const Quotes behind = look_at_lines(window_->text({begin, end}), files_.dialect).from_inside;
    if (behind != Quotes::kStillOpen) return behind != Quotes::kNeverClosed;
    begin = end;
  }
  return false;
}

void TextReader::check_whole() const {
  const std::string note = window_->cut_off();
  if (!note.empty())
    throw DataError("'{}' is truncated{}; fetch or make the file again", files_.files[*open_file_].path,
                    note);
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
  open(chunk.file);
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
