// How often a positive scores above a negative, over all pairs of the two: the statistic of Mann and Whitney
// (1947), which divided by the number of pairs is the area under the ROC curve (AUC). Pairs are whole
// numbers, so the result is exact, and the same however the scores are spread over ranks.
#pragma once

#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// Outputs for samples that are and that are not of a class. None is NaN.
struct Scores {
  std::vector<Scalar> positives;
  std::vector<Scalar> negatives;
};

struct RankedPairs {
  Index positives = 0;
  Index negatives = 0;
  /// Over all pairs: 2 where the positive scores above the negative, 1 where they are equal. Exact up to
  /// 3e9 positives and as many negatives.
  Index twice_above = 0;
};

/// *Collective, blocking.* Of the scores of all ranks; sorts those given. The negatives of each rank go to
/// all others in turn: 4 bytes a score on the wire, and memory for those of one rank.
RankedPairs rank_pairs(Communicator& comm, Scores& scores);

}  // namespace lockstep
