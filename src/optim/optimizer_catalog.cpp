#include <array>

#include "lockstep/optim/optimizer.h"

namespace lockstep {

// One line for each file in optimizers/.
OptimizerEntry sgd_entry();
OptimizerEntry adam_entry();
OptimizerEntry adamw_entry();
OptimizerEntry adagrad_entry();
OptimizerEntry rmsprop_entry();
OptimizerEntry lamb_entry();
OptimizerEntry lion_entry();
OptimizerEntry nadam_entry();
OptimizerEntry adafactor_entry();
OptimizerEntry muon_entry();

std::span<const OptimizerEntry> optimizer_catalog() {
  static const std::array kEntries{sgd_entry(),       adam_entry(), adamw_entry(), adagrad_entry(),
                                   rmsprop_entry(),   lamb_entry(), lion_entry(),  nadam_entry(),
                                   adafactor_entry(), muon_entry()};
  return kEntries;
}

}  // namespace lockstep
