// Memory and messages of a run, for the plan.
#pragma once

#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// Fills in the bytes of `plan`; the rest of it is there.
void plan_costs(const RunPlanRequest& request, RunPlan& plan);

}  // namespace lockstep
