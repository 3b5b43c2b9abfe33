#include <array>

#include "decays/entries.h"

namespace lockstep {

std::span<const DecayEntry> decay_catalog() {
  static const std::array kEntries{constant_entry(), step_entry(), polynomial_entry(), cosine_entry()};
  return kEntries;
}

}  // namespace lockstep
