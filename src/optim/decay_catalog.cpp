#include <array>

#include "lockstep/optim/schedule.h"

namespace lockstep {

// One line for each file in decays/.
DecayEntry constant_entry();
DecayEntry step_entry();
DecayEntry polynomial_entry();
DecayEntry cosine_entry();

std::span<const DecayEntry> decay_catalog() {
  static const std::array kEntries{constant_entry(), step_entry(), polynomial_entry(), cosine_entry()};
  return kEntries;
}

}  // namespace lockstep
