// The flags of sweep and cv, and whole numbers of flags.
#pragma once

#include "front_end.h"

namespace lockstep {

/// The whole number that a flag gives, in `allowed`; `otherwise` if it is not given. Errors: ConfigError
/// naming the flag, and what was expected.
Index parse_count(const FrontEnd& front, std::string_view flag, Range allowed, Index otherwise);

/// Errors: ConfigError naming the flag, and what was expected.
SweepRequest parse_sweep(const FrontEnd& front, CommandLine::Command command);

}  // namespace lockstep
