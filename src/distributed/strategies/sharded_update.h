// Each range of the arena has one owner (Plan::slices): it gets the summed gradient of that range only, keeps
// the optimizer state of it only, takes the step there, and gives the new weights to all.
#pragma once

#include <memory>
#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

std::unique_ptr<SynchronousStrategy> make_sharded_update(const StrategyContext& context);

/// Memory and messages of each rank.
std::vector<RankCosts> sharded_update_costs(const CostModelInput& question);

// The step of a rank that has the sum of all gradients, and takes the step on all weights.

/// *Local.* `sum`: a gradient arena, summed over all replicas; it may be used up. Not applied if the loss or
/// the gradient is not finite.
StepOutcome take_full_update(ParameterUpdate& update, std::span<Scalar> weights, std::span<Scalar> sum,
                             const UpdateRequest& request);

/// *Local.* Names the bad number in a sum that no step could be taken with: the loss first, then the
/// gradients as they come in the backward pass. `weight`: of the request.
std::string describe_bad_sum(const Layout& layout, std::span<const Scalar> sum, double weight);

/// *Collective.* take_full_update() for ranks that have the sums of their own slices only, so that none of
/// them sees by itself whether all are good. `tells_loss`: true on the one rank that has the sum of the
/// losses.
StepOutcome take_owned_update(Communicator& comm, ParameterUpdate& update, std::span<Scalar> weights,
                              std::span<Scalar> sum, bool tells_loss, const UpdateRequest& request);

}  // namespace lockstep
