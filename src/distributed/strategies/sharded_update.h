// Each range of the arena has one owner (Plan::slices): it gets the summed gradient of that range only, keeps
// the optimizer state of it only, takes the step there, and gives the new weights to all.
#pragma once

#include <memory>

#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

std::unique_ptr<SynchronousStrategy> make_sharded_update(const StrategyContext& context);

/// Memory and messages of each rank.
std::vector<RankCosts> sharded_update_costs(const CostModelInput& question);

}  // namespace lockstep
