// The seed of random tests: printed at the start of each program, set with --seed=N to repeat a failure.
#pragma once

#include <cstdint>

namespace lockstep::test {

std::uint64_t seed();

}  // namespace lockstep::test
