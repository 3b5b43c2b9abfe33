// Whether the replicas' shards hold about the same share of each class: training on shards that do not, as
// runs of a sorted file, is biased.
#pragma once

#include <string>

#include "app/setup/experiment.h"

namespace lockstep {

/// A warning for the plan, or "". Reads a sample of the training records. Errors: DataError.
std::string warn_of_uneven_shards(const Experiment& experiment, const SamplingOptions& sampling);

}  // namespace lockstep
