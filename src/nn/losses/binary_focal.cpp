#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

// With p = sigmoid(x) and `miss` = 1 - the probability of what is true: cross entropy times miss^gamma.
struct BinaryFocalError {
  static constexpr TargetKind kTargets = TargetKind::kBinary;
  Scalar gamma;
  Scalar yes;  // weight of a target of 1
  Scalar no;   // and of 0

  PointLoss operator()(Scalar x, Scalar target) const {
    const Scalar e = exp_nonpositive(x > 0 ? -x : x);
    const Scalar p = (x > 0 ? 1 : e) / (1 + e);
    const Scalar q = (x > 0 ? e : 1) / (1 + e);
    const Scalar cross_entropy = (x > 0 ? x : 0) - x * target + log_1_plus(e);
    const Scalar miss = target * q + (1 - target) * p;
    const Scalar factor = (yes * target + no * (1 - target)) * power_of_share(miss, gamma);
    // The derivative of log(miss) is (1 - 2 target) p q / miss.
    const Scalar rate = miss > 0 ? (1 - 2 * target) * (p * q / miss) : 0;
    return {.value = factor * cross_entropy, .slope = factor * (p - target + gamma * rate * cross_entropy)};
  }
};

}  // namespace

LossEntry binary_focal_entry() {
  return {.name = "binary_focal",
          .help =
              "Binary cross entropy x (1 - p)^focal_gamma, with p the probability of what is true: well "
              "predicted samples count little (Lin et al. 2017); focal_alpha weighs yes and no",
          .options = {"train.focal_gamma", "train.focal_alpha"},
          .make = [](const LossOptions& options) {
            const auto alpha = static_cast<Scalar>(options.focal_alpha);
            const BinaryFocalError error{.gamma = static_cast<Scalar>(options.focal_gamma),
                                         .yes = alpha > 0 ? alpha : 1,
                                         .no = alpha > 0 ? 1 - alpha : 1};
            return std::make_unique<PointwiseLoss<BinaryFocalError>>(error);
          }};
}

}  // namespace lockstep
