#include "lockstep/data/table/text/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/base/quoted.h"
#include "lockstep/base/trim.h"

namespace lockstep {

void FieldCursor::start(std::string_view record) {
  next_ = record.data();
  end_ = next_ + record.size();
  done_ = false;
  column_ = 0;
  if (!unquoted_.empty()) unquoted_.clear();
}

std::string_view FieldCursor::take_text() {
  // If blanks separate fields, none belong to a field.
  const auto trims = [this](char c) { return is_blank(c) && c != dialect_.separator; };
  while (next_ != end_ && trims(*next_)) ++next_;
  if (dialect_.quotes && next_ != end_ && *next_ == '"') return take_quoted();
  const char* begin = next_;
  const auto* found = static_cast<const char*>(
      std::memchr(begin, dialect_.separator, static_cast<std::size_t>(end_ - begin)));
  const char* stop = found == nullptr ? end_ : found;
  std::string_view text(begin, static_cast<std::size_t>(stop - begin));
  while (!text.empty() && trims(text.back())) text.remove_suffix(1);
  end_field(stop);
  return text;
}

std::string_view FieldCursor::take_quoted() {
  const char* begin = next_ + 1;
  std::string* unquoted = nullptr;  // only fields with quotes in them need memory of their own
  std::string_view text;
  for (;;) {
    const auto* quote =
        static_cast<const char*>(std::memchr(begin, '"', static_cast<std::size_t>(end_ - begin)));
    if (quote == nullptr) {
      fail("a quote that opens a field",
           "another one that closes it (data.quotes = false takes quotes as characters)");
    }
    const bool doubled = quote + 1 != end_ && quote[1] == '"';
    if (doubled && unquoted == nullptr) unquoted = &unquoted_.emplace_back();
    text = std::string_view(begin, static_cast<std::size_t>(quote - begin));
    if (unquoted != nullptr) unquoted->append(text);
    if (doubled) *unquoted += '"';
    begin = quote + (doubled ? 2 : 1);
    if (!doubled) break;
  }
  if (unquoted != nullptr) text = *unquoted;
  while (begin != end_ && is_blank(*begin) && *begin != dialect_.separator) ++begin;
  if (begin != end_ && *begin != dialect_.separator) {
    fail(fmt::format("{} behind a closing quote",
                     in_quotes(std::string_view(begin, static_cast<std::size_t>(end_ - begin)))),
         "the end of the field");
  }
  end_field(begin);
  return text;
}

void FieldCursor::fail(std::string found, std::string expected) const {
  throw BadRecord{.column = column_, .found = std::move(found), .expected = std::move(expected)};
}

}  // namespace lockstep
