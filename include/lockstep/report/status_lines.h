// One line for each run, as of `trainer status`.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/run_description.h"

namespace lockstep {

/// Name, state, progress, last and best value of a measure, speed, time left; in columns, with a line of
/// heads.
std::string status_lines(const std::vector<RunDescription>& runs);

}  // namespace lockstep
