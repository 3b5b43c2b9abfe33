#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "lockstep/base/catalog.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {

// One line for each file in optimizers/.
std::vector<OptimizerEntry> elementwise_optimizers();
std::vector<OptimizerEntry> adam_optimizers();
OptimizerEntry adafactor_entry();
OptimizerEntry muon_entry();

// The order in which help has them.
constexpr auto kOrder = std::to_array<std::string_view>(
    {"sgd", "adam", "adamw", "adagrad", "rmsprop", "lamb", "lion", "nadam", "adafactor", "muon"});

std::span<const OptimizerEntry> optimizer_catalog() {
  static const std::vector<OptimizerEntry> kEntries = in_order<OptimizerEntry>(
      kOrder, {elementwise_optimizers(), adam_optimizers(), {adafactor_entry(), muon_entry()}});
  return kEntries;
}

}  // namespace lockstep
