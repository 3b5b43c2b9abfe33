// Numbers as people read them in plans, logs and errors, and what may be called text.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "lockstep/base/types.h"

namespace lockstep {

/// 650000 -> "650,000".
std::string with_commas(Index value);
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

}  // namespace lockstep
