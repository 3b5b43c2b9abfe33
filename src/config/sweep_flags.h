// The flags of sweep and cv.
#pragma once

#include "front_end.h"

namespace lockstep {

/// Errors: ConfigError naming the flag, and what was expected.
SweepRequest parse_sweep(const FrontEnd& front, CommandLine::Command command);

}  // namespace lockstep
