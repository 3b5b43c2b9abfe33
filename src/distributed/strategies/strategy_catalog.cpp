#include <array>

#include "lockstep/base/catalog.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

// The entry of each file in ..
StrategyEntry allreduce_entry();
StrategyEntry zero1_entry();
StrategyEntry central_storage_entry();
StrategyEntry parameter_server_entry();
StrategyEntry local_sgd_entry();

std::span<const StrategyEntry> strategy_catalog() {
  static const std::array kEntries{allreduce_entry(), zero1_entry(), central_storage_entry(),
                                   parameter_server_entry(), local_sgd_entry()};
  return kEntries;
}

const StrategyEntry& strategy_entry(const std::string& name) {
  return find_entry(strategy_catalog(), "strategy", name == kAutoStrategy ? "allreduce" : name);
}

bool uses_algorithm(const DistOptions& options) {
  return strategy_entry(options.strategy).sums_to_all && !is_lossy(options);
}

LocalSums local_sums(const DistOptions& options) {
  const StrategyEntry& entry = strategy_entry(options.strategy);
  if (entry.weights_per_replica) return LocalSums::kPerReplica;
  return options.reduction == Reduction::kOrdered ? LocalSums::kAlongTree : LocalSums::kOneSum;
}

Grain owner_grain(const DistOptions& options, const OptimizerMemory& optimizer) {
  const bool divided = strategy_entry(options.strategy).promises.divides_optimizer_state;
  return divided ? optimizer.grain() : Grain::kBlock;
}

bool divides_layers(const DistOptions& options, Index ranks) {
  return ranks > 1 && strategy_entry(options.strategy).promises.divides_layers;
}

Index count_servers(const DistOptions& options) {
  const StrategyEntry& entry = strategy_entry(options.strategy);
  return entry.has_servers ? options.servers : 0;
}

}  // namespace lockstep
