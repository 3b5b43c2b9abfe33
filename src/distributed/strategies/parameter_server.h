// Parameter servers with asynchronous workers: async, bounded, or sync with backup workers.
#pragma once

#include <memory>

#include "lockstep/distributed/strategies/asynchronous.h"

namespace lockstep {

std::unique_ptr<AsynchronousStrategy> make_asynchronous_servers(const StrategyContext& context);

/// Memory and messages of each rank.
std::vector<RankCosts> asynchronous_costs(const CostModelInput& question);

}  // namespace lockstep
