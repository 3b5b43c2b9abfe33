// The steps of which report.trace wants a timeline.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/types.h"

namespace lockstep {

/// Numbers of steps; a step may count as several.
struct TraceRequest {
  Index first = 0;
  Index last = 0;
  Index slowest = 0;

  bool any() const { return first + last + slowest > 0; }
};

/// "first 20, last 20, slowest 20 steps", or some of these parts; "": none. Errors: ConfigError with `key`.
TraceRequest parse_trace(std::string_view key, std::string_view text);

}  // namespace lockstep
