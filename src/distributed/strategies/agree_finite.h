// If each rank has the sums of its own slices only, no rank sees by itself whether all of them are good.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

/// *Collective.* The step is to be applied if every rank's sums are `good` and the loss is finite. `loss`:
/// the sum of the losses from the one rank that reports it, 0 from the others. `weight`: as
/// UpdateRequest::weight.
StepOutcome agree_finite(Communicator& comm, bool good, double loss, double weight);

}  // namespace lockstep
