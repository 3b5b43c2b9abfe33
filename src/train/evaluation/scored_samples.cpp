#include "lockstep/train/evaluation/scored_samples.h"

#include <algorithm>

#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

// Both sorted. For each positive the negatives below it and those up to it: two passes side by side.
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

// *Collective.* The scores of all ranks, sorted, on rank 0; nothing elsewhere.
ScoredSamples collect(Communicator& comm, std::span<const Scalar> scores, std::span<const Scalar> weights) {
  ScoredSamples mine;
  mine.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) mine.push_back({.score = scores[i], .weight = weights[i]});
  return gather_samples(comm, mine);
}

}  // namespace

ScoredSamples gather_samples(Communicator& comm, std::span<const ScoredSample> mine) {
  ScoredSamples all = gather_records(comm, mine);
  std::ranges::sort(all);
  return all;
}

RankedPairs rank_pairs(Communicator& comm, Scores& scores) {
  std::ranges::sort(scores.positives);
  std::ranges::sort(scores.negatives);
  const auto mine = std::ssize(scores.negatives);
  const std::vector<Index> negatives = gather_numbers(comm, mine);

  // positives, negatives, twice_above
  Index totals[] = {std::ssize(scores.positives), mine, 0};
  std::vector<Scalar> received;
  for (int root = 0; root < comm.size(); ++root) {
    const auto count = static_cast<std::size_t>(at(negatives, root));
    if (count == 0) continue;
    received.resize(count);
    const std::span<Scalar> theirs = root == comm.rank() ? std::span(scores.negatives) : std::span(received);
    comm.broadcast(as_buffer(theirs), root);
    totals[2] += count_twice_above(scores.positives, theirs);
  }
  comm.all_reduce_sum(as_buffer(std::span(totals)));
  return {.positives = static_cast<double>(totals[0]),
          .negatives = static_cast<double>(totals[1]),
          .twice_above = static_cast<double>(totals[2])};
}

RankedPairs rank_weighted_pairs(Communicator& comm, Scores& scores) {
  const ScoredSamples positives = collect(comm, scores.positives, scores.positive_weights);
  const ScoredSamples negatives = collect(comm, scores.negatives, scores.negative_weights);
  double totals[] = {0, 0, 0};  // positives, negatives, twice_above; of rank 0
  // For each positive the weight of the negatives below it and up to it: two passes side by side.
  double below = 0;
  double up_to = 0;
  auto next_below = negatives.begin();
  auto next_up_to = negatives.begin();
  for (const ScoredSample& positive : positives) {
    for (; next_below != negatives.end() && next_below->score < positive.score; ++next_below) {
      below += static_cast<double>(next_below->weight);
    }
    for (; next_up_to != negatives.end() && next_up_to->score <= positive.score; ++next_up_to) {
      up_to += static_cast<double>(next_up_to->weight);
    }
    totals[0] += static_cast<double>(positive.weight);
    totals[2] += static_cast<double>(positive.weight) * (below + up_to);
  }
  for (const ScoredSample& negative : negatives) totals[1] += static_cast<double>(negative.weight);
  comm.broadcast(as_buffer(std::span(totals)), 0);
  return {.positives = totals[0], .negatives = totals[1], .twice_above = totals[2]};
}

}  // namespace lockstep
