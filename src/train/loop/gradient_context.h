// The gradient step of a loop, from the training's context.
#pragma once

#include "lockstep/train/loop/gradient_step.h"
#include "lockstep/train/loop/training_context.h"

namespace lockstep {

/// The ranks that take a step together, and their plan.
struct StepRanks {
  Communicator& comm;
  const Plan& plan;
  LocalSums sums = LocalSums::kOneSum;
  ProgressThread* progress = nullptr;
};

/// All references must outlive the step.
inline GradientStepContext gradient_context(const TrainingContext& context, const StepRanks& ranks) {
  const DebugOptions& debug = context.settings.debug;
  return {.comm = ranks.comm,
          .plan = ranks.plan,
          .model = context.model,
          .loss = context.loss,
          .strategy = context.strategy,
          .states = context.states,
          .team = context.team,
          .sums = ranks.sums,
          .seed = context.settings.seed,
          .accumulate = context.settings.accumulate,
          .max_rows = context.sampler.max_count(),
          .target_columns = context.settings.target_columns,
          .progress = ranks.progress,
          .bad_replica = debug.nan_replica,
          .bad_steps = {debug.nan_step, debug.nan_step + debug.nan_steps},
          .pipeline = context.pipeline,
          .schedule = context.settings.schedule};
}

}  // namespace lockstep
