// Replicas that step alone and meet now and then.
#pragma once

#include <memory>

#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

std::unique_ptr<SynchronousStrategy> make_local_sgd(const StrategyContext& context);

}  // namespace lockstep
