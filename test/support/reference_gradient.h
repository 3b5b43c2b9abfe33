// The start and the gradient of the optimizers' references, as in regression/make_torch_references.py.
#pragma once

#include "lockstep/base/types.h"
#include "support/common.h"

namespace lockstep::test {

/// Twelve weights.
inline std::vector<Scalar> reference_start() {
  std::vector<Scalar> weights(12);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = (5 - static_cast<Scalar>(i)) * 0.25F;
  return weights;
}

/// The function `gradient` of the script.
inline void fill_reference_gradient(std::span<const Scalar> weights, Index step, std::span<Scalar> gradient) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Scalar curvature = 0.25F + 0.125F * static_cast<Scalar>(i);
    const Scalar target = 0.5F - 0.25F * static_cast<Scalar>(i % 4);
    const Index wave = (7 * static_cast<Index>(i) + 3 * step) % 11 - 5;
    gradient[i] = curvature * (weights[i] - target) + static_cast<Scalar>(wave) * 0.125F;
  }
}

}  // namespace lockstep::test
