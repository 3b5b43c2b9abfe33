// Memory and messages of a run, for the plan.
#pragma once

#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// Fills in the bytes of `plan`; the rest of it is there. `alive`: micro-batches of a stage that are in
/// memory at a time; 0: the model is no stage.
void plan_costs(const RunPlanRequest& request, RunPlan& plan, Index alive = 0);

}  // namespace lockstep
