// The exchange: from the partial sums of each rank to the sum over all replicas, everywhere. Buckets are
// started in the order of the plan and make progress whenever somebody calls in.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/dist/local_gradients.h"
#include "lockstep/dist/plan.h"

namespace lockstep {

class Reducer {
 public:
  virtual ~Reducer() = default;

  /// *Collective.* `samples[r]`: samples of replica r in this step; 0 means that it contributes nothing.
  virtual void begin_step(std::span<const Index> samples) = 0;
  /// *Collective.* Starts the exchange of a bucket, whose local sums are final.
  virtual void bucket_ready(const Bucket& bucket, const PartialGrads& partial) = 0;
  /// *Local.* Lets what is under way make progress.
  virtual void progress() = 0;
  /// *Collective, blocking.* Ends the step: the whole gradient arena, summed over all replicas; valid until
  /// the next begin_step().
  virtual std::span<Scalar> finish() = 0;
};

/// Plain MPI: the sum's order is the library's choice.
std::unique_ptr<Reducer> make_native_reducer(Communicator& comm, const Plan& plan);

/// Along the fixed tree: each rank owns a slice of each bucket, gets the others' partial sums of it, finishes
/// the tree and gives the result back. The same bits on any number of ranks.
std::unique_ptr<Reducer> make_ordered_reducer(Communicator& comm, const Plan& plan);

}  // namespace lockstep
