#include <array>

#include "lockstep/nn/composite.h"

namespace lockstep {

// One line for each file in composites/.
CompositeEntry residual_entry();
CompositeEntry concat_entry();
CompositeEntry wide_deep_entry();

std::span<const CompositeEntry> composite_catalog() {
  static const std::array kEntries{residual_entry(), concat_entry(), wide_deep_entry()};
  return kEntries;
}

}  // namespace lockstep
