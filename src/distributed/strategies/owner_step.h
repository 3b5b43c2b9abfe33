// Each range of the arena has one owner (Plan::slices): it gets the summed gradient of that range only, keeps
// the optimizer state of it only, takes the step there, and gives the new weights to all.
#pragma once

#include <memory>

#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

std::unique_ptr<SynchronousStrategy> make_owner_step(const StrategyContext& context);

/// What it holds and sends.
std::vector<RankCosts> owner_step_costs(const CostQuestion& question);
/// How long its exchange takes.
StepExchange owner_step_time(const TimeQuestion& question);

}  // namespace lockstep
