// Log lines at the end of a run: the fate of the gradients of asynchronous workers.
#pragma once

#include <string>
#include <vector>

#include "lockstep/train/loop/observer.h"

namespace lockstep {

/// How stale the gradients were, or how many were dropped; then a line for each worker, with its samples in
/// multiples of an even share of the run's `samples`.
std::vector<std::string> worker_lines(const WorkersReport& report, Index samples);

}  // namespace lockstep
