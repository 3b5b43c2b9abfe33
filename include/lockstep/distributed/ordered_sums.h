// Metrics are added in double along the same fixed tree as gradients, so that they too are the same bits on
// any number of ranks.
#pragma once

#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// *Collective, ordered.* Column sums over `leaves` rows of `columns` numbers, of which this rank holds the
/// rows `local` (row-major). The local ranges of the ranks are disjoint, in order of rank, and cover all
/// leaves.
std::vector<double> ordered_sums(Communicator& comm, std::span<const double> rows, Range local, Index leaves,
                                 Index columns);

}  // namespace lockstep
