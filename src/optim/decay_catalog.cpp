#include <array>

#include "lockstep/optim/schedule.h"

namespace lockstep {

// One line for each file in decays/.
DecayEntry constant_entry();
DecayEntry step_entry();
DecayEntry milestones_entry();
DecayEntry exponential_entry();
DecayEntry polynomial_entry();
DecayEntry cosine_entry();
DecayEntry one_cycle_entry();
DecayEntry inverse_sqrt_entry();
DecayEntry wsd_entry();
DecayEntry plateau_entry();

std::span<const DecayEntry> decay_catalog() {
  static const std::array kEntries{
      constant_entry(), step_entry(),      milestones_entry(),   exponential_entry(), polynomial_entry(),
      cosine_entry(),   one_cycle_entry(), inverse_sqrt_entry(), wsd_entry(),         plateau_entry()};
  return kEntries;
}

}  // namespace lockstep
