#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

struct PoissonError {
  static constexpr TargetKind kTargets = TargetKind::kValue;

  static OutputForm form() { return {kTargets, Link::kLog, 1}; }

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar mean = exponential(output);
    return {.value = mean - target * output, .slope = mean - target};
  }
};

}  // namespace

LossEntry poisson_entry() {
  return {.name = "poisson",
          .help =
              "-log likelihood of counts, e^output - target output, without what only the target decides; "
              "predicts e^output",
          .options = {},
          .make = [](const LossOptions&) {
            return std::make_unique<PointwiseLoss<PoissonError>>(PoissonError{});
          }};
}

}  // namespace lockstep
