// If each rank has the sums of its own slices only, no rank sees by itself whether all of them are good.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/distributed/update.h"

namespace lockstep {

/// *Collective.* The step is to be applied if every rank's sums are `good` and the loss is finite. `loss`:
/// the sum of the losses from the one rank that reports it, 0 from the others. `weight`: as
/// UpdateRequest::weight.
StepOutcome agree_finite(Communicator& comm, bool good, double loss, double weight);

// The step of a rank that has the sum of all gradients, and takes the step on all weights.

/// *Local.* `sum`: a gradient arena, summed over all replicas; it may be used up. Not applied if the loss or
/// the gradient is not finite.
StepOutcome take_full_update(ParameterUpdate& update, std::span<Scalar> weights, std::span<Scalar> sum,
                             const UpdateRequest& request);

/// *Local.* Names the bad number in a sum that no step could be taken with: the loss first, then the
/// gradients as they come in the backward pass. `weight`: of the request.
std::string describe_bad_sum(const Layout& layout, std::span<const Scalar> sum, double weight);

// A replica that takes local steps, with weights and optimizer state of its own, until one finds a bad
// number.

struct LocalReplica {
  /// References must outlive it.
  LocalReplica(Index replica, const Layout& layout, const Optimizer& optimizer, const UpdateRules& rules,
               ThreadTeam& team);

  bool stopped() const { return bad_step > 0; }
  /// A step with the sum of its gradients and, behind them, of its losses; or it stops.
  void step(std::span<Scalar> sum, const UpdateRequest& request);
  /// Its optimizer state and, unless all replicas have the same, its weights.
  void add_saved(SavedState& state, bool without_weights);

  Index number;
  AlignedBuffer<Scalar> weights;
  ParameterUpdate update;
  Index bad_step = 0;      ///< step whose loss or gradient was not finite; 0: none
  std::string bad_number;  ///< "step 7: replica 3: ..."

 private:
  const Layout* layout_;
};

// The sum over all replicas of what each of them has in an arena of its own: a rank adds its pieces, bucket
// by bucket, and hands the sums to the exchange.

/// A Reducer whose partial sums are single replicas (LocalSums::kPerReplica), and are used up; all ranks get
/// the result.
std::unique_ptr<Reducer> make_per_replica_reducer(const AlgorithmContext& context,
                                                  const DistOptions& options);

}  // namespace lockstep
