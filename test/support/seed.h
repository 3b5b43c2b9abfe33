// The seed of random tests: printed at the start of each program, set with --seed=N to repeat a failure.
#pragma once

#include "lockstep/base/random.h"
#include "support/common.h"

namespace lockstep::test {

std::uint64_t seed();

/// Normally distributed numbers, other ones for each stream.
inline std::vector<Scalar> random_values(Index size, std::uint64_t stream, Scalar mean = 0,
                                         Scalar deviation = 1) {
  RandomStream random({.seed = seed(), .a = stream});
  std::vector<Scalar> values(static_cast<std::size_t>(size));
  for (Scalar& value : values) value = mean + deviation * random.normal();
  return values;
}

}  // namespace lockstep::test
