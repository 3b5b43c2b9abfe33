#include "text_window.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {

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

TextReader::TextReader(const TextFiles& files) : files_(files) {}

TextReader::~TextReader() = default;

void TextReader::fail_changed(const TextFile& file, Index found) const {
  throw DataError(fmt::format(
      "'{}' changed since it was opened: expected {} bytes, found {}; files must stay as they are until the "
      "run is over",
      file.path, with_commas(file.file_bytes), with_commas(found)));
}

void TextReader::fail_unending(const TextChunk& chunk) const {
  throw DataError(fmt::format(
      "'{}': a record that begins at or after line {} is longer than {}; is a quote not closed? "
      "(data.quotes = false takes quotes as characters)",
      files_.files[chunk.file].path, with_commas(first_line_), human_bytes(TextWindow::kMaxRecordBytes)));
}

// Opens the file of the chunk.
void TextReader::open(const TextChunk& chunk) {
  if (open_file_ == chunk.file) return;
  const TextFile& file = files_.files[chunk.file];
  window_ = std::make_unique<TextWindow>(file);
  if (window_->file_bytes() != file.file_bytes) fail_changed(file, window_->file_bytes());
  open_file_ = chunk.file;
}

// The end of the record that is open at `from`, behind the lines of the chunk.
Index TextReader::find_end(const TextChunk& chunk, Index from) {
  bool whole = false;
  for (Index step = TextWindow::kLookAhead;; step *= 2) {
    const Range ahead{from, window_->range().end};
    if (const auto end = find_record_end(window_->text(ahead), files_.rules, true, whole)) return from + *end;
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
    const auto end = find_record_end(window_->text(lines), files_.rules, true, !chunk.ends_inside);
    first = lines.begin + end.value_or(lines.size());
  }
  if (first >= lines.end) return {};
  first_line_ += std::ranges::count(window_->text({chunk.bytes.begin, first}), '\n');
  return window_->text({first, chunk.ends_inside ? find_end(chunk, lines.end) : lines.end});
}

}  // namespace lockstep
