#include "lockstep/base/text.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace lockstep {
std::string with_commas(Index value) {
  std::string grouped = fmt::format("{}", value);
  const std::size_t first_digit = value < 0 ? 1 : 0;
  for (std::size_t end = grouped.size(); end > first_digit + 3;) {
    end -= 3;
    grouped.insert(end, 1, ',');
  }
  return grouped;
}

std::string human_bytes(double bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<Index>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} m", whole / 3600, whole % 3600 / 60);
}

// The ranges are those of table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above
// U+10FFFF.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto within = [&byte](std::size_t i, unsigned low, unsigned high) {
    return low <= byte(i) && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return within(1, 0x80, 0xbf) ? 2 : 0;
  if (lead < 0xf0) {
    const bool second = within(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf);
    return second && within(2, 0x80, 0xbf) ? 3 : 0;
  }
  const bool second = within(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf);
  return second && within(2, 0x80, 0xbf) && within(3, 0x80, 0xbf) ? 4 : 0;
}

bool is_text(std::string_view text) {
  // Nearly all texts are ASCII, which is seen in one go.
  bool other = false;
  for (const char c : text) other |= static_cast<signed char>(c) <= 0;
  if (!other) return true;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0 || text.front() == '\0') return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace lockstep
