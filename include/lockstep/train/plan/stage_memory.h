// The memory of a rank for any ops of a model, before it is decided where the model is cut.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// Estimates it from plans of two kinds alone, so that a model of n ops takes 2 n plans and not n squared:
/// those of the ops before a cut, and of the ops behind one. What both have beyond the whole model is what
/// lies between. Buffers that ops of two stages would share are all that it may miss.
class StageMemory {
 public:
  struct Stage {
    std::unique_ptr<Model> model;
    OptimizerMemory optimizer;
  };

  /// `request`, with its plan: of any division into as many stages. `make`: the stage of these ops. All
  /// outlive it.
  StageMemory(const RunPlanRequest& request, const RunPlan& plan, std::function<Stage(Range ops)> make);

  /// Bytes of a rank that runs these ops as this part of the model (divide_model()) and no other. Errors:
  /// ConfigError.
  Index bytes(Range ops, Index part);

 private:
  // The plan for a rank that has one micro-batch in memory.
  const MemoryPlan& memory_of(Range ops);

  const RunPlanRequest& request_;
  const RunPlan& plan_;
  std::function<Stage(Range ops)> make_;
  std::vector<Index> alive_;  // micro-batches of each part that are in memory at a time
  std::map<Index, MemoryPlan> before_;
  std::map<Index, MemoryPlan> behind_;
};

}  // namespace lockstep
