// The plans of a run for several numbers of ranks, for people.
#pragma once

#include <span>
#include <string>

#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// The plans side by side, one column for each, as text with one plain sentence at the end for what people
/// most often get wrong.
std::string plan_table(std::span<const RunPlan> plans);

}  // namespace lockstep
