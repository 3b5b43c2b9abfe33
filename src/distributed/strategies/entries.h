// One function per strategy file; the catalog lists them.
#pragma once

#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

StrategyEntry allreduce_entry();
StrategyEntry zero1_entry();
StrategyEntry central_storage_entry();
StrategyEntry parameter_server_entry();
StrategyEntry local_sgd_entry();

}  // namespace lockstep
