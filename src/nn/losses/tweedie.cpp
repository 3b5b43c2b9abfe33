#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

// With p the power, 1 < p < 2: a sum of amounts, as many as a Poisson number says, which may be none.
struct TweedieError {
  static constexpr TargetKind kTargets = TargetKind::kValue;
  double power;
  Scalar below;  // 1 - p
  Scalar above;  // 2 - p

  explicit TweedieError(double p)
      : power(p), below(static_cast<Scalar>(1 - p)), above(static_cast<Scalar>(2 - p)) {}

  OutputForm form() const { return {kTargets, Link::kLog, power}; }

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar pull = target * exponential(below * output);
    const Scalar push = exponential(above * output);
    return {.value = push / above - pull / below, .slope = push - pull};
  }
};

}  // namespace

LossEntry tweedie_entry() {
  return {.name = "tweedie",
          .help =
              "-log likelihood of amounts of which many are 0, e^((2 - p) output) / (2 - p) - target e^((1 - "
              "p) output) / (1 - p) with p = tweedie_power, without what only the target decides; predicts "
              "e^output",
          .options = {"train.tweedie_power"},
          .make = [](const LossOptions& options) {
            return std::make_unique<PointwiseLoss<TweedieError>>(TweedieError(options.tweedie_power));
          }};
}

}  // namespace lockstep
