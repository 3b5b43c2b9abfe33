// A loop of multiply-adds of numbers that stay in registers: its speed is the most that a core can do.
#pragma once

#include "lockstep/base/types.h"

namespace lockstep {

/// Operations of a round of multiply_and_add(); a multiply-add counts as two.
inline constexpr Index kOperationsOfARound = 384;

/// So many times x = x * factor + term, rounded once where the CPU has fused multiply-adds, for as many
/// numbers side by side as keep its units busy. All begin as `start`; gives the last of them.
Scalar multiply_and_add(Index rounds, Scalar start, Scalar factor, Scalar term);

}  // namespace lockstep
