#include <array>

#include "losses/entries.h"

namespace lockstep {

std::span<const LossEntry> loss_catalog() {
  static const std::array kEntries{softmax_cross_entropy_entry(), binary_cross_entropy_entry(),
                                   mean_squared_error_entry(), huber_entry()};
  return kEntries;
}

}  // namespace lockstep
