// distribute.stages = "auto": the number of stages for the memory of a rank.
#pragma once

#include <string>
#include <vector>

#include "experiment.h"
#include "lockstep/base/memory_limit.h"

namespace lockstep {

/// The least number of stages, among those that divide the ranks, with which no rank needs more than `limit`
/// by the plan. Where distribute.cut names layers, they say how many stages there are. `node_sizes`: as
/// Experiment::plan() takes it. Errors: ConfigError if there is none, or no plan at all can be made.
Index choose_stages(const Experiment& experiment, Index world, const std::vector<Index>& node_sizes,
                    const MemoryLimit& limit);

/// Divides the model of the experiment by choose_stages(), if distribute.stages is "auto". The reason in
/// words for a log; "" if it is a number. Errors: ConfigError.
std::string divide_as_needed(Experiment& experiment, Index world, const std::vector<Index>& node_sizes,
                             const MemoryLimit& limit);

}  // namespace lockstep
