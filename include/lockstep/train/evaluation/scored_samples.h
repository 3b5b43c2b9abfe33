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

// How often a positive scores above a negative, over all pairs of the two: the statistic of Mann and Whitney
// (1947), which divided by the number of pairs is the area under the ROC curve (AUC). Pairs are whole
// numbers, so the result is exact, and the same however the scores are spread over ranks. Where samples have
// weights, a pair counts as often as the product of its two says (as sample_weight of scikit-learn): these
// are added in the order of the scores and, of equal ones, of the weights, which is the same on any number of
// ranks.

/// Outputs for samples that are and that are not of a class. None is NaN.
struct Scores {
  std::vector<Scalar> positives;
  std::vector<Scalar> negatives;
  std::vector<Scalar> positive_weights = {};  ///< one for each, or none at all
  std::vector<Scalar> negative_weights = {};
};

/// Sums of weights; numbers of samples and pairs, where they have none.
struct RankedPairs {
  double positives = 0;
  double negatives = 0;
  /// Over all pairs: 2 where the positive scores above the negative, 1 where they are equal. Without weights
  /// added exactly, up to 3e9 positives and as many negatives.
  double twice_above = 0;
};

/// *Collective, blocking.* Counts pairs over the scores of all ranks; sorts those given. The negatives of
/// each rank go to all others in turn: 4 bytes a score in messages, and memory for those of one rank.
RankedPairs rank_pairs(Communicator& comm, Scores& scores);

/// *Collective, blocking.* Counts pairs with weights, which every rank must then have. Scores and weights of
/// all samples go to rank 0, which has to have the memory for them: see gather_samples().
RankedPairs rank_weighted_pairs(Communicator& comm, Scores& scores);

}  // namespace lockstep
