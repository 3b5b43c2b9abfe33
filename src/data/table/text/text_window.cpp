#include "text_window.h"

#include <algorithm>

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

}  // namespace lockstep
