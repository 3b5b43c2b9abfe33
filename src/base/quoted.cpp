#include "lockstep/base/quoted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// The start of `text` that fits; no character is cut in two.
std::string_view start_of(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  std::size_t end = max_bytes;
  while (end > 0 && max_bytes - end < 3 && continues(text[end])) --end;
  return text.substr(0, end);
}

// Marks and overrides of the direction of writing, and the two line ends of Unicode.
bool is_invisible(char32_t character) {
  return character == 0x200e || character == 0x200f || (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto rest = [&](std::size_t i) { return static_cast<char32_t>(byte(i) & 0x3f); };
    const bool control =
        byte(0) < 0x20 || byte(0) == 0x7f || (length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0);
    const char32_t wide =
        length == 3 ? static_cast<char32_t>(byte(0) & 0x0f) << 12 | rest(1) << 6 | rest(2) : U'\0';
    if (control || (length == 1 && byte(0) >= 0x80)) {
      for (std::size_t i = 0; i < length; ++i) shown += fmt::format("\\x{:02x}", byte(i));
    } else if (is_invisible(wide)) {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(wide));
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
}

std::string length_of(std::string_view text) {
  return fmt::format(" ({} bytes)", with_commas(std::ssize(text)));
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t max_bytes) {
  const std::string_view start = start_of(text, max_bytes);
  return printable(start) + (start.size() < text.size() ? "..." + length_of(text) : "");
}

std::string in_quotes(std::string_view text) {
  const std::string_view start = start_of(text, kMaxQuotedBytes);
  const std::string shown = printable(start);
  if (start.size() == text.size()) return fmt::format("'{}'", shown);
  return fmt::format("'{}...'{}", shown, length_of(text));
}

std::string listed(std::span<const std::string> names, std::size_t max_names) {
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(max_names, names.size()))) {
    shown.push_back(excerpt(name));
  }
  const std::string rest =
      names.size() <= max_names ? "" : fmt::format(", ... ({} in all)", with_commas(std::ssize(names)));
  return fmt::format("{}{}", fmt::join(shown, ", "), rest);
}

std::string first_lines(std::span<const std::string> lines, std::size_t max_lines) {
  const std::string rest =
      lines.size() <= max_lines ? "" : fmt::format("\n  ... ({} in all)", with_commas(std::ssize(lines)));
  return fmt::format("{}{}", fmt::join(lines.first(std::min(max_lines, lines.size())), "\n  "), rest);
}

}  // namespace lockstep
