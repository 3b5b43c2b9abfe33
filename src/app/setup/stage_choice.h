// The division of the model for the memory of a rank: distribute.stages = "auto" and distribute.cut = "auto".
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment.h"
#include "lockstep/base/process.h"

namespace lockstep {

/// The ranks of a run, and the memory that each of them may have.
struct MemoryBudget {
  Index world = 1;
  std::vector<Index> node_sizes = {};  ///< as Experiment::plan() takes it
  MemoryLimit limit = {};
};

/// A division of the model with its plan.
struct FoundDivision {
  std::vector<std::unique_ptr<Model>> stages;
  RunPlan plan;
  std::string why;  ///< where it is cut for the sake of memory, for a log; "" if memory did not matter

  Index count() const { return std::max<Index>(1, std::ssize(stages)); }
};

/// Divides the model into the stages that `config` says: where distribute.cut is "auto", so that each rank
/// has the memory by the plan, if that can be; if not, so that the largest rank needs little. Errors:
/// ConfigError for what cannot be divided or planned.
FoundDivision divide_to_fit(const Experiment& experiment, const Config& config, const MemoryBudget& budget);

/// The division into the least number of stages, among those that divide the ranks, with which no rank needs
/// more than its limit by the plan. Where distribute.cut names layers, they say how many stages there are.
/// Errors: ConfigError if there is none, or no plan at all can be made.
FoundDivision choose_division(const Experiment& experiment, const MemoryBudget& budget);

/// Divides the model of the experiment by choose_division() if distribute.stages is "auto", else by
/// divide_to_fit(). The reasons in words for a log; empty if the config says all. Errors: ConfigError.
std::vector<std::string> divide_as_needed(Experiment& experiment, const MemoryBudget& budget);

/// The distribute.cut that repeats the division of the experiment where its own would not; nothing if that
/// does, or if no name of a layer says where the model is cut.
std::optional<std::vector<std::string>> cut_of_division(const Experiment& experiment);

}  // namespace lockstep
