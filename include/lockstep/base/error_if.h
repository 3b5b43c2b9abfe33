// Refusals in one statement, as lines of a log are written.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "lockstep/base/errors.h"

namespace lockstep {

/// Throws that failure where something is `wrong`. The values are looked at in any case.
template <class Failure = ConfigError, class... Values>
void error_if(bool wrong, fmt::format_string<Values...> text, Values&&... values) {
  if (wrong) throw Failure(fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace lockstep
