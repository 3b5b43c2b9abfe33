#include <array>

#include "lockstep/optim/optimizer.h"
#include "optimizers/entries.h"

namespace lockstep {

std::span<const OptimizerEntry> optimizer_catalog() {
  static const std::array kEntries{sgd_entry(),     adam_entry(),    adamw_entry(),
                                   adagrad_entry(), rmsprop_entry(), lamb_entry()};
  return kEntries;
}

}  // namespace lockstep
