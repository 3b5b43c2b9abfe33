// Sums over a whole tensor in a fixed order.
#pragma once

#include <algorithm>
#include <span>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

/// The sum of squares, block by block.
inline double sum_squares(std::span<const Scalar> values) {
  double sum = 0;
  while (!values.empty()) {
    const auto block = values.first(std::min(values.size(), static_cast<std::size_t>(kSquareBlock)));
    double squares = 0;
    sum_squares_of_blocks(block, std::span(&squares, 1));
    sum += squares;
    values = values.subspan(block.size());
  }
  return sum;
}

}  // namespace lockstep
