// Counts of the servers: gradients, samples and losses that they have taken in, in all and of each worker.
#pragma once

#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// Sums over all gradients that the servers have taken in since the run began.
struct Totals {
  Index steps = 0;
  Index samples = 0;
  double weight = 0;   ///< sum over the samples of their weights, see LossSums
  double loss = 0;     ///< sum over the samples
  double correct = 0;  ///< weight of the samples that were predicted correctly, see LossSums
};

/// One worker's gradients: computed, applied, dropped.
struct WorkerRecord {
  Index computed = 0;  ///< gradients that it pushed, as it counted them itself
  Index steps = 0;     ///< gradients applied
  Index samples = 0;   ///< samples in the gradients applied
  Index dropped = 0;   ///< gradients that came too late (backup workers)
  Index dropped_samples = 0;
  Index max_ahead = 0;           ///< gradients more than the slowest worker had pushed, when it was let go
  Index staleness_sum = 0;       ///< over the slices of gradients that were applied
  std::vector<Index> staleness;  ///< how many of them, by staleness; the last of 1,024 counts is "or more"
};

struct WorkersReport {
  Totals totals;
  std::vector<WorkerRecord> workers;

  /// Over the gradients of all workers.
  double mean_staleness() const;
  /// The least staleness that at least this share of them do not exceed.
  Index staleness_percentile(double share) const;
};

}  // namespace lockstep
