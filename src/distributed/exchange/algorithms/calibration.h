// A short measurement at the start of a run: which algorithm is fastest for messages of which size, here and
// now.
#pragma once

#include <span>
#include <vector>

#include "lockstep/distributed/exchange/algorithm.h"

namespace lockstep {

/// The size that stands for messages of `count` numbers in a calibration: a power of two of at most 4 MiB.
Index calibrated_size(Index count);

/// *Collective.* For each of `sizes` (ascending) the candidate with the shortest median time, as rank 0
/// measures it; the same on all ranks. Sizes that time does not suffice for get what the size before them
/// got.
std::vector<const AlgorithmEntry*> find_fastest(const AlgorithmContext& context,
                                                std::span<const AlgorithmEntry* const> candidates,
                                                std::span<const Index> sizes);

}  // namespace lockstep
