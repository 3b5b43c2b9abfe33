// The stages of a model that is divided among ranks, as the plan prints them.
#pragma once

#include <string>

#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// A line for each stage, then the share of idle time and advice; "" where the model is not divided.
std::string stage_table(const RunPlan& plan);

}  // namespace lockstep
