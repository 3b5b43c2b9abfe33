#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

struct GammaError {
  static constexpr TargetKind kTargets = TargetKind::kValue;

  static OutputForm form() { return {kTargets, Link::kLog, 2}; }

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar ratio = target * exponential(-output);
    return {.value = output + ratio, .slope = 1 - ratio};
  }
};

}  // namespace

LossEntry gamma_entry() {
  return {
      .name = "gamma",
      .help =
          "-log likelihood of amounts above 0 whose error grows with them, output + target / e^output, "
          "without what only the target decides; predicts e^output",
      .options = {},
      .make = [](const LossOptions&) { return std::make_unique<PointwiseLoss<GammaError>>(GammaError{}); }};
}

}  // namespace lockstep
