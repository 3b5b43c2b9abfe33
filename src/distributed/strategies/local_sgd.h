// Replicas that take local steps and are averaged now and then.
#pragma once

#include <memory>

#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

std::unique_ptr<SynchronousStrategy> make_local_sgd(const StrategyContext& context);

}  // namespace lockstep
