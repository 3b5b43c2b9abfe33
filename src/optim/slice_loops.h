// Loops over the numbers of a slice or tensor that optimizers share.
#pragma once

#include <algorithm>
#include <span>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/kernels.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {

/// Each weight becomes rule(weight, its gradient with the scale, its number in each of `slots`...), which
/// updates these. A weight is read before anything is written: arenas start at the same offset of a page, and
/// a load behind a store to the same offset of another page waits for it.
template <class Rule, class... Slot>
void update_each(const ParamSlice& slice, const StepInfo& info, const Rule& rule, Slot*... slots) {
  const Scalar scale = info.gradient_scale;
  Scalar* w = slice.weights.data();
  const Scalar* gradient = slice.gradient.data();
  const std::size_t n = slice.weights.size();
  for (std::size_t i = 0; i < n; ++i) w[i] = rule(w[i], scale * gradient[i], slots[i]...);
}

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
