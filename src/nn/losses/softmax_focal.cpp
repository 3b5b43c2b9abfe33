#include <cassert>
#include <vector>

#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "row_reductions.h"

namespace lockstep {
namespace {

// With p the softmax probability of the target's class and `miss` = 1 - p: cross entropy times miss^gamma.
class SoftmaxFocal final : public Loss {
 public:
  explicit SoftmaxFocal(double gamma) : gamma_(static_cast<Scalar>(gamma)) {}

  TargetKind targets() const override { return TargetKind::kClass; }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    const auto classes = static_cast<std::size_t>(outputs.cols());
    std::vector<Scalar> scratch(gradient ? 0 : classes);
    double total = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      const Index start = row * outputs.cols();
      const auto target = static_cast<std::size_t>(targets(row, 0));
      assert(target < classes && "the data set checks its labels");
      Scalar* work = gradient ? gradient->data() + start : scratch.data();
      total += evaluate_row({outputs.data() + start, classes}, target, {work, classes});
    }
    return total;
  }

 private:
  // The loss of one row; `gradient` becomes its derivative.
  double evaluate_row(std::span<const Scalar> x, std::size_t target, std::span<Scalar> gradient) const {
    const Scalar largest = row_max(x);
    for (std::size_t i = 0; i < x.size(); ++i) gradient[i] = exp_nonpositive(x[i] - largest);
    const double sum = row_sum(gradient);
    const Scalar hit = gradient[target];
    // The others are added without the target: 1 - p would have few digits where p is nearly 1.
    gradient[target] = 0;
    const double others = row_sum(gradient);
    gradient[target] = hit;

    const auto p = static_cast<Scalar>(static_cast<double>(hit) / sum);
    const auto miss = static_cast<Scalar>(others / sum);
    const Scalar cross_entropy = others <= static_cast<double>(hit)
                                     ? log_1_plus(static_cast<Scalar>(others / static_cast<double>(hit)))
                                     : largest - x[target] + logarithm(static_cast<Scalar>(sum));
    const Scalar factor = power_of_share(miss, gamma_);
    const Scalar slope = factor * (1 + gamma_ * p * (miss > 0 ? cross_entropy / miss : 0));

    const auto scale = static_cast<Scalar>(1 / sum);
    for (Scalar& g : gradient) g = g * scale * slope;
    gradient[target] = -miss * slope;
    // The second term is 0, or NaN where an output of any class is not finite: as it should.
    return static_cast<double>(factor) * static_cast<double>(cross_entropy) + 0 * row_sum(x);
  }

  Scalar gamma_;
};

}  // namespace

LossEntry softmax_focal_entry() {
  return {
      .name = "softmax_focal",
      .help =
          "Softmax cross entropy x (1 - p)^focal_gamma, with p the probability of the target's class: "
          "well predicted samples count little (Lin et al. 2017)",
      .options = {"train.focal_gamma"},
      .make = [](const LossOptions& options) { return std::make_unique<SoftmaxFocal>(options.focal_gamma); }};
}

}  // namespace lockstep
