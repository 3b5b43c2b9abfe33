// The exchange: from the partial sums of each rank to the sum over all replicas, everywhere. Buckets are
// started in the order of the plan and make progress whenever somebody calls in.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/options.h"
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

// Which reducers there are, and the one that fits the options.

/// The complete subtrees of the fixed tree in a range of replicas that have a sample in them (`samples`: by
/// replica): those that a rank which hosts the range contributes, in order.
std::vector<Range> present_subtrees(Index replicas, Range hosted, std::span<const Index> samples);

/// The exchange by messages that the options ask for: through their codec and, to all, by MPI or along the
/// fixed tree. make_exchange() has other ways too.
std::unique_ptr<Reducer> make_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                      Delivery delivery);

/// make_reducer() without a codec. `overlaps`: see make_native_reducer().
std::unique_ptr<Reducer> make_exact_reducer(Communicator& comm, const Plan& plan, Reduction reduction,
                                            Delivery delivery, bool overlaps);

/// Plain MPI, to all: the sum's order is the library's choice. `overlaps`: a bucket travels while something
/// else goes on; else bucket_ready() waits for it.
std::unique_ptr<Reducer> make_native_reducer(Communicator& comm, bool overlaps);

/// Each rank owns a slice of each bucket (Plan::slices), gets the others' partial sums of it, adds them and,
/// if asked, gives the result to all; else only the own slices of what finish() gives are sums. Ordered:
/// along the fixed tree, the same bits on any number of ranks. Native: rank by rank.
std::unique_ptr<Reducer> make_owner_reducer(Communicator& comm, const Plan& plan, Reduction reduction,
                                            Delivery delivery);

/// The owner reducer with messages that go through the codec of the options, which is not fp32: each rank has
/// one partial sum, and these are added rank by rank.
std::unique_ptr<Reducer> make_lossy_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                            Delivery delivery);

}  // namespace lockstep
