#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

struct SquaredError {
  static constexpr TargetKind kTargets = TargetKind::kValue;

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar difference = output - target;
    return {.value = difference * difference, .slope = 2 * difference};
  }
};

}  // namespace

LossEntry mean_squared_error_entry() {
  return {.name = "mean_squared_error",
          .help = "(output - target)^2",
          .options = {},
          .make = [](const LossOptions&) {
            return std::make_unique<PointwiseLoss<SquaredError>>(SquaredError{});
          }};
}

}  // namespace lockstep
