// The sum of squares, in double, first value first.
#pragma once

#include "lockstep/base/types.h"
#include "support/common.h"

namespace lockstep::test {

inline double sum_of_squares(std::span<const Scalar> values) {
  double sum = 0;
  for (const Scalar value : values) sum += double{value} * double{value};
  return sum;
}

}  // namespace lockstep::test
