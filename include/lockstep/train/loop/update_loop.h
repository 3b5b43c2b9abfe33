// How the updates between two evaluations come about: all ranks step by step together, or each worker at its
// own pace.
#pragma once

#include <memory>
#include <string>

#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/gradient_step.h"
#include "lockstep/train/loop/rank_times.h"
#include "lockstep/train/loop/training_context.h"

namespace lockstep {

class UpdateLoop {
 public:
  virtual ~UpdateLoop() = default;

  /// *Local.* For a run that goes on after so many steps: before saved_state().
  virtual void resume_after(Index steps) = 0;
  /// *Local, between two steps.* State of the loop from step to step; its memory is read to save a run, and
  /// filled to resume one.
  virtual SavedState saved_state() = 0;
  /// *Collective.* Once, before the first step; after what was saved has been filled.
  virtual void begin() = 0;

  /// *Collective.* Trains until so many updates are done in all, or until the ranks agree that something else
  /// is due first (RunControl). Errors: AgreedError (exit code 5) if the
  /// loss or a gradient is not finite; the weights are then those of the last good step.
  virtual void advance(Index until) = 0;
  /// *Collective.* The running moments anew, over the batches of the first `steps` steps under these weights
  /// (Wu & Johnson 2021, "Rethinking batch in BatchNorm", section 3.1): of many batches under the same
  /// weights, instead of a moving average over weights that were.
  virtual void recompute_moments(Index steps, std::span<const Scalar> weights) = 0;
  /// How far training has come; samples are those that were learned from.
  virtual Progress progress() const = 0;
  /// Each worker's gradients so far, with asynchronous workers.
  virtual std::optional<WorkersReport> workers() const { return std::nullopt; }
  /// Steps that were left out, because their loss or gradient was not finite.
  virtual Index skipped_steps() const { return 0; }
  /// Steps in which some replica had a single value for batch norm to normalise.
  virtual Index single_value_steps() const = 0;
  /// Times that replicas which differed were made equal again.
  virtual Index repairs() const { return 0; }
  /// Seconds of the steps so far.
  virtual double seconds() const = 0;
  /// *Collective.* Shares of the time so far, over all ranks.
  virtual TimeShares take_shares() = 0;
  /// The time of each rank since the run was started.
  virtual const RankTimes& rank_times() const = 0;
};

std::unique_ptr<UpdateLoop> make_synchronous_loop(const TrainingContext& context,
                                                  SynchronousStrategy& strategy);
std::unique_ptr<UpdateLoop> make_asynchronous_loop(const TrainingContext& context,
                                                   AsynchronousStrategy& strategy);

}  // namespace lockstep
