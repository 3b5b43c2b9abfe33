// Numbers as people read them in plans, logs and errors, and what may be called text.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// 650000 -> "650,000".
std::string with_commas(Index value);
/// The small letter of one of ASCII; other bytes stay.
constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string in_lower_case(std::string_view text);
/// ASCII text in the letters of `model`, which is not empty: all capital, the first one only, or none.
std::string in_case_of(std::string_view model, std::string_view text);
/// Whether a path ends so, or in one of these ways, be it in capital letters.
bool ends_as(std::string_view path, std::string_view end);
bool ends_as(std::string_view path, std::span<const std::string> ends);
/// "12,345": whole; "-" for what is not finite or beyond 10^15.
std::string count_text(double value);
/// A rate by the second: as count_text(), and "0.83" below 10.
std::string rate_text(double value);
/// "1,234 samples/s", and behind it "78,976 tokens/s" where a sample has `tokens`, which are not 0.
std::string sample_rate(double samples, Index tokens);
/// "0.38536": five significant digits; "-" for what is not finite.
std::string short_number(double value);
/// "1 rank", "2,000 ranks".
std::string plural(Index count, std::string_view noun);
/// Bytes in the largest unit that keeps the number above one: "1.5 MiB".
std::string human_bytes(double bytes);
inline std::string human_bytes(std::integral auto bytes) {
  return human_bytes(static_cast<double>(bytes));
}
/// Seconds as "4.2 s", "3 m 05 s", "2 h 10 m".
std::string human_seconds(double seconds);

/// Length in bytes of the UTF-8 character that `text` starts with, 0 if it starts with none.
std::size_t utf8_length(std::string_view text);
/// Whether all of it is UTF-8 without a zero byte.
bool is_text(std::string_view text);
/// "UTF-16" or "UTF-32", if the text begins with the byte order mark of it, else "".
std::string_view marked_encoding(std::string_view text);

// Tables on the terminal.

/// Lines whose columns are as wide as their widest cell, with two blanks between; no line ends with blanks.
/// The first `left` columns are aligned to the left, the others to the right. All rows have as many cells.
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       std::size_t left = std::numeric_limits<std::size_t>::max());

/// The number that all of `text` is; nothing where it is none, or is out of the range of the type.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// A space or a tab.
inline bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/// `text` without the blanks at both ends.
inline std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// Texts as cells of CSV (RFC 4180).

/// In double quotes, with those in it doubled.
std::string csv_quoted(std::string_view text);
/// As it is, or in quotes where a comma, a quote or a line end makes that necessary.
std::string csv_cell(std::string_view text);

/// The text as a string of TOML, in double quotes, with quotes, backslashes and control characters escaped.
std::string toml_string(std::string_view text);

// Texts of users and of files in messages: data fields, names, keys, values. However long such a text is, the
// message stays short, and whatever is in it, a terminal shows it as text.

inline constexpr std::size_t kMaxQuotedBytes = 80;
inline constexpr std::size_t kMaxListedNames = 20;

/// Control characters as \x1b, those that turn the direction of writing as \u202e, bytes that are no UTF-8 as
/// \xe9. Beyond `max_bytes` the text is cut, and its length said: "abc... (50,000,000 bytes)".
std::string excerpt(std::string_view text, std::size_t max_bytes = kMaxQuotedBytes);

/// An excerpt in quotes: "'abc'", or "'abc...' (50,000,000 bytes)".
std::string in_quotes(std::string_view text);

/// The first names of a list: "a, b, c", or "a, b, c, ... (200,000 in all)".
std::string listed(std::span<const std::string> names, std::size_t max_names = kMaxListedNames);

/// The first lines of a list, each indented: "a\n  b", or "a\n  b\n  ... (200,000 in all)".
std::string first_lines(std::span<const std::string> lines, std::size_t max_lines = kMaxListedNames);

}  // namespace lockstep
