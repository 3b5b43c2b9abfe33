#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

struct HuberError {
  static constexpr TargetKind kTargets = TargetKind::kValue;
  Scalar delta;

  // With c the difference d cut off at +-delta: d^2 / 2 inside, delta (|d| - delta / 2) outside.
  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar d = output - target;
    const Scalar below = d > delta ? delta : d;
    const Scalar c = below < -delta ? -delta : below;
    return {.value = c * (d - c / 2), .slope = c};
  }
};

}  // namespace

LossEntry huber_entry() {
  return {.name = "huber",
          .help = "Squared error / 2 up to huber_delta, linear beyond (Huber 1964)",
          .options = {"train.huber_delta"},
          .make = [](const LossOptions& options) {
            const HuberError error{.delta = static_cast<Scalar>(options.huber_delta)};
            return std::make_unique<PointwiseLoss<HuberError>>(error);
          }};
}

}  // namespace lockstep
