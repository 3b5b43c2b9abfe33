// The names of the combinations that are refused, as configs/texts/refusals.txt has them.
#pragma once

#include <algorithm>
#include <string_view>

#include "refusal_names.h"

namespace lockstep {

/// One of these names. Another text does not compile.
struct RefusalName {
  std::string_view text;

  consteval RefusalName(const char* name) : text(name) {  // NOLINT: a literal is a name
    if (std::ranges::find(kRefusalNames, text) == std::end(kRefusalNames)) throw "refusals.txt lacks it";
  }
};

}  // namespace lockstep
