// The part of a run plan that is about the stages of the model.
#pragma once

#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// The plan of the ranks that have `model`, all of the model or a stage of it. Errors: ConfigError.
Plan plan_ranks(const RunPlanRequest& request, const Model& model, Index replicas);

/// One of the stages of a request, or ops that could be one.
struct PlannedStage {
  const Model& model;
  const OptimizerMemory& optimizer;
  Index number = 0;
  std::span<const Index> alive;  ///< see plan_costs()
};

/// Copies that a rank has of a weight that its stage shares with others and does not own: one for training,
/// and one for each set that is evaluated.
Index copies_of_borrowed(const RunPlanRequest& request);

/// The plan of the ranks that run it. Of `plan` all but the stages is there.
RunPlan plan_stage(const RunPlanRequest& request, const RunPlan& plan, const PlannedStage& stage);

/// Adds the stages, and the memory of a rank of the largest one; the rest of `plan` is there, as if the model
/// were not divided.
void plan_stages(const RunPlanRequest& request, RunPlan& plan);

// Memory and messages of a run, for the plan.

/// Fills in the bytes of `plan`; the rest of it is there. `alive`: by chunk of a stage, the micro-batches
/// that are in memory at a time; empty: the model is no stage.
void plan_costs(const RunPlanRequest& request, RunPlan& plan, std::span<const Index> alive = {});

}  // namespace lockstep
