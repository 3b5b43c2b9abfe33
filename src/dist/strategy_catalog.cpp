#include <array>

#include "lockstep/dist/strategy.h"
#include "strategies/entries.h"

namespace lockstep {

std::span<const StrategyEntry> strategy_catalog() {
  static const std::array kEntries{allreduce_entry(), zero1_entry(), central_storage_entry()};
  return kEntries;
}

std::span<Scalar> Strategy::gradient_arena(Index size) {
  const std::lock_guard lock(arenas_mutex_);
  return arenas_.emplace_back(size).span();
}

}  // namespace lockstep
