#include "lockstep/nn/loss.h"
#include "pointwise_loss.h"

namespace lockstep {
namespace {

struct HingeError {
  static constexpr TargetKind kTargets = TargetKind::kBinary;

  static OutputForm form() { return {kTargets, Link::kIdentity}; }

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar side = 2 * target - 1;
    const Scalar lack = 1 - side * output;
    // The second term is 0, or NaN where the output is not finite: an infinite one may be on the right side.
    return {.value = (lack > 0 ? lack : 0) + 0 * output, .slope = lack > 0 ? -side : 0};
  }
};

}  // namespace

LossEntry binary_hinge_entry() {
  return {
      .name = "binary_hinge",
      .help = "max(0, 1 - side x output) with side = 1 for yes and -1 for no; the outputs are margins",
      .options = {},
      .make = [](const LossOptions&) { return std::make_unique<PointwiseLoss<HingeError>>(HingeError{}); }};
}

}  // namespace lockstep
