// The division of the model for the memory of a rank: distribute.stages = "auto" and distribute.cut = "auto".
#pragma once

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

/// Divides the model of the experiment: if distribute.stages is "auto", into the least number of stages,
/// among those that divide the ranks, with which no rank needs more than its limit by the plan (where
/// distribute.cut names layers, they say how many); else into those of the config. Where distribute.cut is
/// "auto", it is cut so that each rank has the memory by the plan, if that can be; if not, so that the
/// largest rank needs little. The reasons in words for a log; empty if the config says all. Errors:
/// ConfigError.
std::vector<std::string> divide_as_needed(Experiment& experiment, const MemoryBudget& budget);

/// The distribute.cut that repeats the division of the experiment where its own would not; nothing if that
/// does, or if no name of a layer says where the model is cut.
std::optional<std::vector<std::string>> cut_of_division(const Experiment& experiment);

}  // namespace lockstep
