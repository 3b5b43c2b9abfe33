// Losses that treat each output of a row by itself and take their mean.
#include <vector>

#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "row_reductions.h"

namespace lockstep {
namespace {

// The loss of one output and its derivative by that output.
struct PointLoss {
  Scalar value;
  Scalar slope;
};

// `Pointwise` states `kTargets`, and by form() the form of its outputs if that is not the usual one. It maps
// (output, target) to a PointLoss whose value is not finite when the output is not.
template <class Pointwise>
class PointwiseLoss final : public Loss {
 public:
  explicit PointwiseLoss(const Pointwise& pointwise) : pointwise_(pointwise) {}

  TargetKind targets() const override { return Pointwise::kTargets; }
  bool takes_missing_targets() const override { return true; }

  OutputForm form() const override {
    if constexpr (requires { pointwise_.form(); }) return pointwise_.form();
    return Loss::form();
  }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    const Index n = outputs.cols();
    std::vector<Scalar> values(static_cast<std::size_t>(n));
    std::vector<Scalar> unwanted(gradient ? 0 : static_cast<std::size_t>(n));
    double total = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      const Index start = row * n;
      Scalar* slopes = gradient ? gradient->data() + start : unwanted.data();
      evaluate_row(outputs.data() + start, targets.data() + start, slopes, values);
      total += row_sum(values) / static_cast<double>(n);
    }
    return total;
  }

 private:
  void evaluate_row(const Scalar* outputs, const Scalar* targets, Scalar* slopes,
                    std::span<Scalar> values) const {
    const Pointwise pointwise = pointwise_;
    const Scalar share = 1 / static_cast<Scalar>(values.size());
    Scalar* value = values.data();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const PointLoss point = pointwise(outputs[i], targets[i]);
      const bool there = targets[i] == targets[i];
      // Beside a missing target an output that is not finite still shows: x - x is 0 or NaN.
      value[i] = there ? point.value : outputs[i] - outputs[i];
      slopes[i] = there ? point.slope * share : Scalar{0};
    }
  }

  Pointwise pointwise_;
};

template <class Pointwise>
std::unique_ptr<Loss> pointwise_loss(const Pointwise& pointwise) {
  return std::make_unique<PointwiseLoss<Pointwise>>(pointwise);
}

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

std::unique_ptr<Loss> make_binary_focal(const LossOptions& options) {
  const auto alpha = static_cast<Scalar>(options.focal_alpha);
  return pointwise_loss(BinaryFocalError{.gamma = static_cast<Scalar>(options.focal_gamma),
                                         .yes = alpha > 0 ? alpha : 1,
                                         .no = alpha > 0 ? 1 - alpha : 1});
}

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

struct SquaredError {
  static constexpr TargetKind kTargets = TargetKind::kValue;

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar difference = output - target;
    return {.value = difference * difference, .slope = 2 * difference};
  }
};

struct AbsoluteError {
  static constexpr TargetKind kTargets = TargetKind::kValue;

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar d = output - target;
    const Scalar slope = d > 0 ? 1 : (d < 0 ? -1 : 0);
    return {.value = d < 0 ? -d : d, .slope = slope};
  }
};

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

struct PoissonError {
  static constexpr TargetKind kTargets = TargetKind::kValue;

  static OutputForm form() { return {kTargets, Link::kLog, 1}; }

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar mean = exponential(output);
    return {.value = mean - target * output, .slope = mean - target};
  }
};

struct GammaError {
  static constexpr TargetKind kTargets = TargetKind::kValue;

  static OutputForm form() { return {kTargets, Link::kLog, 2}; }

  PointLoss operator()(Scalar output, Scalar target) const {
    const Scalar ratio = target * exponential(-output);
    return {.value = output + ratio, .slope = 1 - ratio};
  }
};

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

std::vector<LossEntry> pointwise_losses() {
  return {
      {.name = "binary_cross_entropy",
       .help = "-(t log p + (1 - t) log(1 - p)) with p = sigmoid(output)",
       .options = {},
       .make = [](const LossOptions&) { return pointwise_loss(LogisticError{}); }},
      {.name = "binary_focal",
       .help = "Binary cross entropy x (1 - p)^focal_gamma, with p the probability of what is true: well "
               "predicted samples count little (Lin et al. 2017); focal_alpha weighs yes and no",
       .options = {"train.focal_gamma", "train.focal_alpha"},
       .make = make_binary_focal},
      {.name = "binary_hinge",
       .help = "max(0, 1 - side x output) with side = 1 for yes and -1 for no; the outputs are margins",
       .options = {},
       .make = [](const LossOptions&) { return pointwise_loss(HingeError{}); }},
      {.name = "mean_squared_error",
       .help = "(output - target)^2",
       .options = {},
       .make = [](const LossOptions&) { return pointwise_loss(SquaredError{}); }},
      {.name = "mean_absolute_error",
       .help = "|output - target|: learns the median, which targets far off hardly move",
       .options = {},
       .make = [](const LossOptions&) { return pointwise_loss(AbsoluteError{}); }},
      {.name = "huber",
       .help = "Squared error / 2 up to huber_delta, linear beyond (Huber 1964)",
       .options = {"train.huber_delta"},
       .make =
           [](const LossOptions& options) {
             return pointwise_loss(HuberError{.delta = static_cast<Scalar>(options.huber_delta)});
           }},
      {.name = "poisson",
       .help = "-log likelihood of counts, e^output - target output, without what only the target decides; "
               "predicts e^output",
       .options = {},
       .make = [](const LossOptions&) { return pointwise_loss(PoissonError{}); }},
      {.name = "tweedie",
       .help =
           "-log likelihood of amounts of which many are 0, e^((2 - p) output) / (2 - p) - target e^((1 - "
           "p) output) / (1 - p) with p = tweedie_power, without what only the target decides; predicts "
           "e^output",
       .options = {"train.tweedie_power"},
       .make =
           [](const LossOptions& options) { return pointwise_loss(TweedieError(options.tweedie_power)); }},
      {.name = "gamma",
       .help = "-log likelihood of amounts above 0 whose error grows with them, output + target / e^output, "
               "without what only the target decides; predicts e^output",
       .options = {},
       .make = [](const LossOptions&) { return pointwise_loss(GammaError{}); }}};
}

}  // namespace lockstep
