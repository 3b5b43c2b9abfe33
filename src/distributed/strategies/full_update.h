// The step of a rank that has the sum of all gradients, and takes the step on all weights.
#pragma once

#include <string>

#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

/// *Local.* `sum`: a gradient arena, summed over all replicas; it may be used up. Not applied if the loss or
/// the gradient is not finite.
StepOutcome take_full_update(ParameterUpdate& update, std::span<Scalar> weights, std::span<Scalar> sum,
                             const UpdateRequest& request);

/// *Local.* Names the bad number in a sum that no step could be taken with: the loss first, then the
/// gradients as they come in the backward pass. `weight`: of the request.
std::string describe_bad_sum(const Layout& layout, std::span<const Scalar> sum, double weight);

}  // namespace lockstep
