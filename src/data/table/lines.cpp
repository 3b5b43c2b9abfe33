#include "lockstep/data/table/lines.h"

#include <algorithm>
#include <cstring>

namespace lockstep {

LineCounts count_lines(std::string_view text) {
  return {.quotes = std::ranges::count(text, '"'), .lines = std::ranges::count(text, '\n')};
}

std::optional<Index> find_line_end(std::string_view text, bool quotes, bool& inside) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  for (const char* at = begin; at != end;) {
    const auto* line_end =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    const char* const stop = line_end == nullptr ? end : line_end + 1;
    if (quotes) inside ^= std::count(at, stop, '"') % 2 != 0;
    if (line_end != nullptr && !inside) return stop - begin;
    at = stop;
  }
  return std::nullopt;
}

bool RecordLines::next(std::string_view& record) {
  while (!rest_.empty()) {
    bool inside = false;
    const auto length =
        static_cast<std::size_t>(find_line_end(rest_, quotes_, inside).value_or(std::ssize(rest_)));
    record = rest_.substr(0, length);
    rest_.remove_prefix(length);
    line_ = next_line_;
    next_line_ += quotes_ ? std::ranges::count(record, '\n') : 1;
    unclosed_ = inside;
    if (!record.empty() && record.back() == '\n') record.remove_suffix(1);
    if (!record.empty() && record.back() == '\r') record.remove_suffix(1);
    if (!record.empty()) return true;
  }
  return false;
}

}  // namespace lockstep
