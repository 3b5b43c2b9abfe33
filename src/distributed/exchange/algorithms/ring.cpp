// The numbers are cut into as many segments as there are ranks. In the first N - 1 stages each segment goes
// once around the ring and gathers everybody's share, to end complete at the rank before the one where it
// started; in the next N - 1 the complete segments go around.
#include "distributed/exchange/reducers.h"

namespace lockstep {

std::vector<Stage> ring_stages(int rank, int ranks, Index count) {
  const auto segment = [&](int number) {
    return split_evenly(count, ranks, (number + 2 * ranks) % ranks, kAlignment);
  };
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  std::vector<Stage> stages;
  for (int stage = 0; stage < ranks - 1; ++stage) {
    append_stage(stages, {next, segment(rank - stage)}, {previous, segment(rank - stage - 1)}, Write::kAdd);
  }
  for (int stage = 0; stage < ranks - 1; ++stage) {
    append_stage(stages, {next, segment(rank + 1 - stage)}, {previous, segment(rank - stage)},
                 Write::kReplace);
  }
  return stages;
}

AlgorithmEntry ring_entry() {
  return staged_entry(
      "ring",
      "each rank passes segments on to the next one, N - 1 times around to add and N - 1 times "
      "to hand out: the fewest bytes, in many stages",
      ring_stages);
}

}  // namespace lockstep
