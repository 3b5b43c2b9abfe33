// The part that adam, adamw and lamb share: running means of the gradient and of its square.
#pragma once

#include <cmath>

#include "lockstep/optim/optimizer.h"
#include "optim/slice_loops.h"

namespace lockstep {

/// Decay of the mean of the squares, if train.beta2 is not given.
inline constexpr double kBeta2 = 0.999;

/// Coefficients of one step: computed in double, used in single precision.
struct AdamCoefficients {
  AdamCoefficients(const OptimizerOptions& options, Index step)
      : beta1(static_cast<Scalar>(options.beta1)),
        rest1(static_cast<Scalar>(1 - options.beta1)),
        beta2(static_cast<Scalar>(options.beta2_or(kBeta2))),
        rest2(static_cast<Scalar>(1 - options.beta2_or(kBeta2))),
        unbias1(static_cast<Scalar>(1 / (1 - std::pow(options.beta1, static_cast<double>(step))))),
        unbias2(static_cast<Scalar>(
            1 / std::sqrt(1 - std::pow(options.beta2_or(kBeta2), static_cast<double>(step))))),
        epsilon(static_cast<Scalar>(options.epsilon)) {}

  Scalar beta1, rest1, beta2, rest2;
  Scalar unbias1, unbias2;  ///< factors that undo the start from zero: of the mean, and of the root
  Scalar epsilon;
};

/// Updates the moments of one weight with its gradient g; the bias-corrected mean over root mean square
/// (Kingma & Ba 2015, algorithm 1).
inline Scalar adam_ratio(const AdamCoefficients& c, Scalar g, Scalar& mean, Scalar& square) {
  mean = c.beta1 * mean + c.rest1 * g;
  square = c.beta2 * square + c.rest2 * (g * g);
  return c.unbias1 * mean / (std::sqrt(square) * c.unbias2 + c.epsilon);
}

/// The step that adamw and muon share: Adam with weight decay apart from the gradient, on a slice whose slots
/// 0 and 1 hold its moments.
inline void adamw_step(const OptimizerOptions& options, const ParamSlice& slice, const StepInfo& info) {
  const AdamCoefficients c(options, info.step);
  const auto lr = static_cast<Scalar>(info.lr);
  const auto kept = static_cast<Scalar>(1 - info.lr * info.weight_decay);
  const auto rule = [=](Scalar weight, Scalar g, Scalar& mean, Scalar& square) {
    return kept * weight - lr * adam_ratio(c, g, mean, square);
  };
  update_each(slice, info, rule, slice.slots[0].data(), slice.slots[1].data());
}

}  // namespace lockstep
