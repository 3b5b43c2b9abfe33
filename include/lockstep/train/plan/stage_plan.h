// Bytes that the ranks of a plan hold and send: of a model as a whole, of its stages, and of any ops of a
// model before it is decided where it is cut.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/nn/stages.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

/// The plan of the ranks that have `model`, all of the model or a stage of it. Errors: ConfigError.
Plan plan_ranks(const RunPlanRequest& request, const Model& model, Index replicas);

/// All of a model, one of the stages of a request, or ops that could be one.
struct PlannedStage {
  const Model& model;
  const OptimizerMemory& optimizer;
  Index number = 0;
  std::span<const Index> alive = {};  ///< by chunk of a stage, the micro-batches that are in memory at a time
};

/// Fills in the bytes of `plan`; the rest of it is there.
void plan_costs(const RunPlanRequest& request, const PlannedStage& stage, RunPlan& plan);

/// Adds the stages, and the memory of a rank of the largest one; the rest of `plan` is there, as if the model
/// were not divided.
void plan_stages(const RunPlanRequest& request, RunPlan& plan);

/// Estimates the memory of a rank from plans of two kinds alone, so that a model of n ops takes 2 n plans and
/// not n squared: those of the ops before a cut, and of the ops behind one. What both have beyond the whole
/// model is what lies between. Weights that ops share are counted apart, since that does not hold for them;
/// of the gradients by them it counts the most that may be kept.
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
  // Bytes of a rank that has one micro-batch in memory, without weights that ops share.
  struct Parts {
    Index activations = 0;
    Index data = 0;
    Index other = 0;
  };
  const Parts& parts_of(Range ops);
  Index tied_bytes(Range ops, Index part) const;

  const RunPlanRequest& request_;
  const RunPlan& plan_;
  std::function<Stage(Range ops)> make_;
  std::vector<ModelTie> ties_;
  std::vector<Index> alive_;                  // micro-batches of each part that are in memory at a time
  std::vector<std::optional<Parts>> before_;  // the ops before each cut
  std::vector<std::optional<Parts>> behind_;
};

}  // namespace lockstep
