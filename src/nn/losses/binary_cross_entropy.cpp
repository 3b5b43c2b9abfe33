#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

struct LogisticError {
  static constexpr TargetKind kTargets = TargetKind::kBinary;

  // With e = exp(-|x|), which cannot overflow: max(x, 0) - x t + log(1 + e), and sigmoid(x) - t.
  PointLoss operator()(Scalar x, Scalar target) const {
    const Scalar e = exp_nonpositive(x > 0 ? -x : x);
    const Scalar positive = x > 0 ? x : 0;
    const Scalar numerator = x > 0 ? 1 : e;
    return {.value = positive - x * target + log_1_plus(e), .slope = numerator / (1 + e) - target};
  }
};

}  // namespace

LossEntry binary_cross_entropy_entry() {
  return {.name = "binary_cross_entropy",
          .help = "-(t log p + (1 - t) log(1 - p)) with p = sigmoid(output)",
          .options = {},
          .make = [](const LossOptions&) {
            return std::make_unique<PointwiseLoss<LogisticError>>(LogisticError{});
          }};
}

}  // namespace lockstep
