#include "lockstep/data/table/text/lines.h"

#include <algorithm>
#include <cstring>

#include "lockstep/base/trim.h"

namespace lockstep {
namespace {

const char* find(const char* begin, const char* end, char c) {
  return static_cast<const char*>(std::memchr(begin, c, static_cast<std::size_t>(end - begin)));
}

bool separates(char c, const LineRules& rules) {
  if (rules.separator != LineRules::kAnySeparator) return c == rules.separator;
  return c == ',' || c == '\t' || c == ';' || c == '|';
}

bool is_filler(char c, const LineRules& rules) {
  return is_blank(c) && !separates(c, rules);
}

bool starts_field(const char* begin, const char* quote, const LineRules& rules) {
  while (quote != begin && is_filler(quote[-1], rules)) --quote;
  return quote == begin || separates(quote[-1], rules);
}

// `at`: behind a quote of a quoted field. `end`: of the line, without its line end.
bool ends_field(const char* at, const char* end, const LineRules& rules) {
  while (at != end && is_filler(*at, rules)) ++at;
  return at == end || separates(*at, rules);
}

// The first quote in a quoted field that is not doubled; null for none.
const char* find_closing(const char* at, const char* end) {
  while (const char* quote = find(at, end, '"')) {
    if (quote + 1 == end || quote[1] != '"') return quote;
    at = quote + 2;
  }
  return nullptr;
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Whether a quoted field is open at the end of a line, of which all from `at` on is outside of quotes.
bool opens_quote(std::string_view line, const LineRules& rules, std::size_t at = 0) {
  const char* const begin = line.data();
  const char* const end = begin + line.size();
  const char* from = begin + at;
  while (const char* quote = find(from, end, '"')) {
    from = quote + 1;
    if (!starts_field(begin, quote, rules)) continue;
    const char* closing = find_closing(from, end);
    if (closing == nullptr) return true;
    // Anything else behind a closing quote makes the record bad, and it ends with its line.
    if (!ends_field(closing + 1, end, rules)) return false;
    from = closing + 1;
  }
  return false;
}

// The effect of a line on a quoted field that is open where it begins.
struct Close {
  LinePart::Closing closing = LinePart::Closing::kNone;
  bool reopens = false;
};
Close close_quote(std::string_view line, const LineRules& rules) {
  const char* const end = line.data() + line.size();
  const char* closing = find_closing(line.data(), end);
  if (closing == nullptr) return {};
  if (!ends_field(closing + 1, end, rules)) return {LinePart::Closing::kNever};
  const auto behind = static_cast<std::size_t>(closing + 1 - line.data());
  return {LinePart::Closing::kClosed, opens_quote(line, rules, behind)};
}

}  // namespace

std::optional<Index> find_record_end(std::string_view text, const LineRules& rules, bool inside, bool whole) {
  std::optional<Index> end_if_never_closed;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t found = text.find('\n', begin);
    if (found == std::string_view::npos && !whole) return std::nullopt;
    const std::size_t end = found == std::string_view::npos ? text.size() : found + 1;
    const auto record_end = static_cast<Index>(end);
    if (!rules.quotes) return record_end;
    const std::string_view line = without_line_end(text.substr(begin, end - begin));
    const Close close = inside ? close_quote(line, rules) : Close{LinePart::Closing::kClosed};
    const bool open = inside ? close.reopens : opens_quote(line, rules);
    if (close.closing == LinePart::Closing::kNever) return end_if_never_closed.value_or(record_end);
    if (close.closing == LinePart::Closing::kClosed) {
      if (!open) return record_end;
      end_if_never_closed = record_end;
      inside = true;
    }
    begin = end;
  }
  if (!whole) return std::nullopt;
  return end_if_never_closed.value_or(std::ssize(text));
}

LinePart look_at_lines(std::string_view lines, const LineRules& rules) {
  LinePart part;
  if (!rules.quotes) return part;
  std::size_t begin = 0;
  for (;;) {
    // Lines without quotes change nothing.
    const std::size_t quote = lines.find('"', begin);
    if (quote == std::string_view::npos) return part;
    const std::size_t before = quote == 0 ? std::string_view::npos : lines.rfind('\n', quote - 1);
    begin = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t end = std::min(lines.find('\n', quote), lines.size() - 1) + 1;
    const std::string_view line = without_line_end(lines.substr(begin, end - begin));
    const auto next = [&](bool open) {
      if (!open) return opens_quote(line, rules);
      const Close close = close_quote(line, rules);
      return close.closing == LinePart::Closing::kNone    ? true
             : close.closing == LinePart::Closing::kNever ? opens_quote(line, rules)
                                                          : close.reopens;
    };
    if (part.closing == LinePart::Closing::kNone) {
      const Close close = close_quote(line, rules);
      part.closing = close.closing;
      part.reopens = close.reopens;
      part.opens = next(part.opens);
    } else {
      // Mostly both answers are the same soon.
      const bool differs = part.reopens != part.opens;
      part.opens = next(part.opens);
      part.reopens = differs ? next(part.reopens) : part.opens;
    }
    begin = end;
  }
}

bool RecordLines::next(std::string_view& record) {
  while (!rest_.empty()) {
    const auto length =
        static_cast<std::size_t>(find_record_end(rest_, rules_, false, true).value_or(std::ssize(rest_)));
    record = rest_.substr(0, length);
    rest_.remove_prefix(length);
    line_ = next_line_;
    next_line_ += rules_.quotes ? std::ranges::count(record, '\n') + (record.ends_with('\n') ? 0 : 1) : 1;
    record = without_line_end(record);
    if (!record.empty()) return true;
  }
  return false;
}

}  // namespace lockstep
