#include "lockstep/train/evaluation/scored_samples.h"

#include <algorithm>

#include "lockstep/comm/agree.h"

namespace lockstep {

ScoredSamples gather_samples(Communicator& comm, std::span<const ScoredSample> mine) {
  ScoredSamples all = gather_records(comm, mine);
  std::ranges::sort(all);
  return all;
}

}  // namespace lockstep
