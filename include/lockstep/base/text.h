// Numbers as people read them in plans, logs and errors, and what may be called text.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/types.h"

namespace lockstep {

/// 650000 -> "650,000".
std::string with_commas(Index value);
/// Bytes in the largest unit that keeps the number above one: "1.5 MiB".
std::string human_bytes(double bytes);
/// Seconds as "4.2 s", "3 m 05 s", "2 h 10 m".
std::string human_seconds(double seconds);

/// Whether all of it is UTF-8 without a zero byte.
bool is_text(std::string_view text);

}  // namespace lockstep
