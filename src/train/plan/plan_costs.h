// Memory and messages of a run, for the plan.
#pragma once

#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// Fills in the bytes of `plan`; the rest of it is there. `alive`: by chunk of a stage, the micro-batches
/// that are in memory at a time; empty: the model is no stage.
void plan_costs(const RunPlanRequest& request, RunPlan& plan, std::span<const Index> alive = {});

}  // namespace lockstep
