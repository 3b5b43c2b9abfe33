// Lines of the log on how the work of a run is spread: threads over cores, classes over shards, gradients
// over workers.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/train/loop/observer.h"

namespace lockstep {

// The warning that a rank has more threads than cores to run on.

/// `cores[rank]`: those that the rank may run on. Names the rank that has the fewest, with the corrected
/// command line; "" if that one has a core for each of its `threads`.
std::string few_cores_warning(std::span<const Index> cores, Index threads);

// The warning that the replicas' shards do not hold about the same share of each class.

/// Samples by class, of the classes that occur. (A model may have 10^9 outputs.)
using ClassCounts = std::map<Index, double>;

/// `shards[replica]`: what was counted of its shard. Names a class whose share of a shard is far from its
/// share of all samples, by more than chance explains; "" if there is none.
std::string describe_uneven_shards(std::span<const ClassCounts> shards);

// Log lines at the end of a run: the fate of the gradients of asynchronous workers.

/// How stale the gradients were, or how many were dropped; then a line for each worker, with its samples in
/// multiples of an even share of the run's `samples`.
std::vector<std::string> worker_lines(const WorkersReport& report, Index samples);

}  // namespace lockstep
