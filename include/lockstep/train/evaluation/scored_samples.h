// Samples of all ranks, for metrics that have to look at all of them together: in one order, which is the
// same however they are spread over ranks.
#pragma once

#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// A sample with its output. None of the numbers is NaN.
struct ScoredSample {
  Scalar score = 0;
  Scalar target = 0;
  Scalar weight = 1;
  auto operator<=>(const ScoredSample&) const = default;
};

using ScoredSamples = std::vector<ScoredSample>;

/// *Collective, blocking.* On rank 0 the samples of all ranks, sorted by score, target and weight; nothing
/// elsewhere. Rank 0 has to have the memory for them: 12 bytes a sample.
ScoredSamples gather_samples(Communicator& comm, std::span<const ScoredSample> mine);

}  // namespace lockstep
