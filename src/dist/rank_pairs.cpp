#include "lockstep/dist/rank_pairs.h"

#include <algorithm>

namespace lockstep {
namespace {

// Both sorted. For each positive the negatives below it and those up to it: two walks side by side.
Index count_twice_above(std::span<const Scalar> positives, std::span<const Scalar> negatives) {
  Index twice = 0;
  std::size_t below = 0;
  std::size_t up_to = 0;
  for (const Scalar score : positives) {
    while (below < negatives.size() && negatives[below] < score) ++below;
    while (up_to < negatives.size() && negatives[up_to] <= score) ++up_to;
    twice += static_cast<Index>(below + up_to);
  }
  return twice;
}

}  // namespace

RankedPairs rank_pairs(Communicator& comm, Scores& scores) {
  std::ranges::sort(scores.positives);
  std::ranges::sort(scores.negatives);
  const auto mine = static_cast<Index>(scores.negatives.size());
  std::vector<Index> negatives(static_cast<std::size_t>(comm.size()));
  comm.all_gather(as_buffer(std::span<const Index>(&mine, 1)), as_buffer(std::span(negatives)));

  // positives, negatives, twice_above
  Index totals[] = {static_cast<Index>(scores.positives.size()), mine, 0};
  std::vector<Scalar> received;
  for (int root = 0; root < comm.size(); ++root) {
    const auto count = static_cast<std::size_t>(negatives[static_cast<std::size_t>(root)]);
    if (count == 0) continue;
    received.resize(count);
    const std::span<Scalar> theirs = root == comm.rank() ? std::span(scores.negatives) : std::span(received);
    comm.broadcast(as_buffer(theirs), root);
    totals[2] += count_twice_above(scores.positives, theirs);
  }
  comm.all_reduce_sum(as_buffer(std::span(totals)));
  return {.positives = totals[0], .negatives = totals[1], .twice_above = totals[2]};
}

}  // namespace lockstep
