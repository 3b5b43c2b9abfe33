#include <array>

#include "lockstep/nn/loss.h"

namespace lockstep {

// One line for each file in losses/.
LossEntry softmax_cross_entropy_entry();
LossEntry binary_cross_entropy_entry();
LossEntry mean_squared_error_entry();
LossEntry huber_entry();

std::span<const LossEntry> loss_catalog() {
  static const std::array kEntries{softmax_cross_entropy_entry(), binary_cross_entropy_entry(),
                                   mean_squared_error_entry(), huber_entry()};
  return kEntries;
}

}  // namespace lockstep
