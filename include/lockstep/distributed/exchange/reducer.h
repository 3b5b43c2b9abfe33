// The exchange: from the partial sums of each rank to the sum over all replicas, everywhere. Buckets are
// started in the order of the plan and make progress whenever somebody calls in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/saved_state.h"

namespace lockstep {

/// Whether every rank gets the whole sum, or each the slices that it owns.
enum class Delivery { kReduceScatter, kAllReduce };

class Reducer {
 public:
  virtual ~Reducer() = default;

  /// *Collective.* `samples[r]`: samples of replica r in this step; 0 means that it contributes nothing.
  virtual void begin_step(std::span<const Index> samples) = 0;
  /// *Collective.* Starts the exchange of a bucket, whose local sums are final.
  virtual void bucket_ready(const Bucket& bucket, const PartialGrads& partial) = 0;
  /// *Local.* Lets what is under way make progress. How many buckets of the step are complete, from the first
  /// on.
  virtual std::size_t progress() = 0;
  /// *Local*, after the first bucket_ready() of the step; with divided tensors, whose owners put their sums
  /// there, at any time. The gradient arena in which complete buckets are summed over all replicas; valid
  /// until the next begin_step().
  virtual std::span<Scalar> sum() = 0;
  /// *Collective, blocking.* Ends the step: sum(), with all buckets complete.
  virtual std::span<Scalar> finish() = 0;

  /// *Local, any thread.* Memory for one more arena of partial sums, where the exchange reads them in place
  /// and all have to lie there; empty: they may lie anywhere.
  virtual std::span<Scalar> shared_arena() { return {}; }
  /// *Local, between two steps.* Adds what the exchange itself keeps from step to step.
  virtual void add_saved(SavedState&) {}
  /// *Local.* The algorithm of the exchange, if there is a choice: "shared"; else "".
  virtual std::string algorithm() const { return {}; }
};

}  // namespace lockstep
