// Texts of users and of files in messages: data fields, names, keys, values. However long such a text is, the
// message stays short, and whatever is in it, a terminal shows it as text.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

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
