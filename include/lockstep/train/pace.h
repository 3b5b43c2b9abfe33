// How the updates between two evaluations come about: all ranks step by step together, or each worker at its
// own pace.
#pragma once

#include <memory>

#include "lockstep/train/metrics.h"
#include "lockstep/train/training_context.h"

namespace lockstep {

class Pace {
 public:
  virtual ~Pace() = default;

  /// *Collective.* Trains until so many updates are done in all. Errors: AgreedError (exit code 5) if the
  /// loss or a gradient is not finite; the weights are then those of the last good step.
  virtual void advance(Index until) = 0;
  /// *Collective.* The running moments anew, over the batches of the first `steps` steps under the weights as
  /// they are (Wu & Johnson 2021, "Rethinking batch in BatchNorm", section 3.1): of many batches under the
  /// same weights, instead of a moving average over weights that were.
  virtual void recompute_moments(Index steps) = 0;
  /// Of the steps so far.
  virtual double seconds() const = 0;
  /// *Collective.* Shares of the time so far, over all ranks.
  virtual TimeShares take_shares() = 0;
};

std::unique_ptr<Pace> make_synchronous_pace(const TrainingContext& context, SynchronousStrategy& strategy);

}  // namespace lockstep
