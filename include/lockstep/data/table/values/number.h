// Numbers as tables hold them. In line, because reading them is most of the time that a table takes.
#pragma once

#include <fast_float/fast_float.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockstep {

/// ASCII digits only, whatever the locale.
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The digits, up to seven, that the eight bytes at `text` start with. No loop, so no wrong guess of how many
/// there are (the three multiplications: D. Lemire, "Quickly parsing eight digits", 2018).
struct Digits {
  std::uint32_t value = 0;
  int count = 0;  ///< 8: eight or more; `value` is that of eight
};
inline Digits leading_digits(const char* text) {
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  word ^= 0x3030303030303030U;
  const std::uint64_t others = (word | (word + 0x7676767676767676U)) & 0x8080808080808080U;
  const int count = others == 0 ? 8 : std::countr_zero(others) / 8;
  // The digits go to the end of the word, with zeros before them.
  word = count == 0 ? 0 : word << (64 - 8 * count);
  word = word * 10 + (word >> 8);
  const std::uint64_t value = ((word & 0x000000FF000000FFU) * 0x000F424000000064U +
                               ((word >> 16) & 0x000000FF000000FFU) * 0x0000271000000001U) >>
                              32;
  return {.value = static_cast<std::uint32_t>(value), .count = count};
}

/// As parse_number_prefix, for what tables hold most: up to seven digits on either side of a point. Null for
/// all else, even if it is a number. Exact: both numbers of the one division are (Clinger 1990).
inline const char* parse_plain_number(const char* begin, const char* end, double& value) {
  static constexpr std::array kPowers{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
  if constexpr (std::endian::native != std::endian::little) return nullptr;
  constexpr std::ptrdiff_t kReach = 18;  // a sign, eight bytes, a point, eight bytes
  if (end - begin < kReach) return nullptr;
  const bool negative = *begin == '-';
  const char* at = begin + (negative ? 1 : 0);
  const Digits whole = leading_digits(at);
  at += whole.count;
  if (whole.count == 8) return nullptr;
  double read = whole.value;
  if (*at == '.') {
    const Digits part = leading_digits(++at);
    at += part.count;
    if (part.count == 8 || whole.count + part.count == 0) return nullptr;
    const double power = kPowers[static_cast<std::size_t>(part.count)];
    read = (read * power + part.value) / power;
  } else if (whole.count == 0) {
    return nullptr;
  }
  if ((*at | 0x20) == 'e') return nullptr;
  value = negative ? -read : read;
  return at;
}

/// The position behind the finite number that [begin, end) starts with; null where it starts with none.
inline const char* parse_number_prefix(const char* begin, const char* end, double& value) {
  if (const char* stop = parse_plain_number(begin, end, value)) return stop;
  // As std::from_chars, fast_float takes no sign but the minus.
  if (begin != end && *begin == '+' && begin + 1 != end && begin[1] != '-') ++begin;
  const auto [stop, error] = fast_float::from_chars(begin, end, value);
  return error == std::errc() && std::isfinite(value) ? stop : nullptr;
}

/// The finite number that `text` is from end to end: "12", "-.5", "+3", "1e-3". Nothing else: no blanks, no
/// "inf", no thousands separators.
inline std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || parse_number_prefix(text.data(), end, value) != end) return std::nullopt;
  return value;
}

}  // namespace lockstep
