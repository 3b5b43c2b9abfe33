// The seed of random tests: printed at the start of each program, set with --seed=N to repeat a failure.
#pragma once

#include "support/common.h"

namespace lockstep::test {

std::uint64_t seed();

}  // namespace lockstep::test
