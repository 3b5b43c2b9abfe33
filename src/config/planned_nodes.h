// The flags of plan that describe machines.
#pragma once

#include <string>

#include "front_end.h"

namespace lockstep {

/// Nothing planned without --nodes. Errors: ConfigError naming the flag, and what was expected.
PlannedNodes parse_planned_nodes(const FrontEnd& front, const std::string& config_file);

}  // namespace lockstep
