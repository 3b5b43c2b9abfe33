// The exchange: from the partial sums of each rank to the sum over all replicas, everywhere. Buckets are
// started in the order of the plan and make progress whenever somebody calls in.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/saved_state.h"

namespace lockstep {

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
  const std::string& algorithm() const { return algorithm_; }
  void set_algorithm(std::string name) { algorithm_ = std::move(name); }

 private:
  std::string algorithm_;
};

/// Whether every rank gets the whole sum, or each the slices that it owns.
enum class Delivery { kReduceScatter, kAllReduce };

/// The algorithm that runs on any nodes: plain MPI or, ordered, messages between all pairs.
inline constexpr const char* kMpiAlgorithm = "mpi";

/// The arguments that an exchange is made from. `comm` and `plan` outlive it.
struct ExchangeRequest {
  Communicator& comm;
  const Plan& plan;
  const DistOptions& options;
  Delivery delivery = Delivery::kAllReduce;
  std::string algorithm = kMpiAlgorithm;   ///< of an exact sum to all; "auto": the fastest for each bucket
  Index gradient_arenas = 1;               ///< arenas that this rank takes, at most
  Index ranks_per_node = 0;                ///< nodes are taken for so small; 0: as they are
  bool overlaps = plan.several_buckets();  ///< buckets travel while something else goes on

  /// For the same ranks, with other buckets.
  ExchangeRequest with_plan(const Plan& other) const {
    return {comm, other, options, delivery, algorithm, gradient_arenas, ranks_per_node, overlaps};
  }
};

/// *Collective.* The exchange through the codec of the options and, where it loses nothing and every rank
/// gets the whole sum, by the algorithm. Errors: AgreedError if that cannot run on these nodes, or if shared
/// memory is not to be had (`auto` does without it).
std::unique_ptr<Reducer> make_reducer(const ExchangeRequest& request);

}  // namespace lockstep
