// The step that adamw and muon share.
#pragma once

#include "adam_moments.h"

namespace lockstep {

/// Adam with weight decay apart from the gradient, on a slice whose slots 0 and 1 hold its moments.
inline void adamw_step(const OptimizerOptions& options, const ParamSlice& slice, const StepInfo& info) {
  const AdamCoefficients c(options, info.step);
  const auto lr = static_cast<Scalar>(info.lr);
  const Scalar scale = info.gradient_scale;
  const auto kept = static_cast<Scalar>(1 - info.lr * info.weight_decay);
  Scalar* w = slice.weights.data();
  const Scalar* g = slice.gradient.data();
  Scalar* mean = slice.slots[0].data();
  Scalar* square = slice.slots[1].data();
  const std::size_t n = slice.weights.size();
  for (std::size_t i = 0; i < n; ++i) {
    const Scalar weight = w[i];
    w[i] = kept * weight - lr * adam_ratio(c, scale * g[i], mean[i], square[i]);
  }
}

}  // namespace lockstep
