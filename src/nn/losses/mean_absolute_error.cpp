#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

struct AbsoluteError {
  static constexpr TargetKind kTargets = TargetKind::kValue;

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar d = output - target;
    const Scalar slope = d > 0 ? 1 : (d < 0 ? -1 : 0);
    return {.value = d < 0 ? -d : d, .slope = slope};
  }
};

}  // namespace

LossEntry mean_absolute_error_entry() {
  return {.name = "mean_absolute_error",
          .help = "|output - target|: learns the median, which targets far off hardly move",
          .options = {},
          .make = [](const LossOptions&) {
            return std::make_unique<PointwiseLoss<AbsoluteError>>(AbsoluteError{});
          }};
}

}  // namespace lockstep
