#pragma once

#include <string_view>

namespace lockstep {

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

}  // namespace lockstep
