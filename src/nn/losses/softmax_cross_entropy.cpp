#include <cassert>
#include <cmath>
#include <vector>

#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "row_reductions.h"

namespace lockstep {
namespace {

// e = exp(x - largest), which cannot overflow.
void exponentials(std::span<const Scalar> x, Scalar largest, std::span<Scalar> e) {
  for (std::size_t i = 0; i < e.size(); ++i) e[i] = exp_nonpositive(x[i] - largest);
}

// Cross entropy against 1 - smoothing on the target class plus smoothing / classes on every class (Szegedy et
// al. 2016, section 7).
class SoftmaxCrossEntropy final : public Loss {
 public:
  explicit SoftmaxCrossEntropy(double smoothing) : smoothing_(smoothing) {}

  TargetKind targets() const override { return TargetKind::kClass; }
  bool takes_probabilities() const override { return true; }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    const auto classes = static_cast<std::size_t>(outputs.cols());
    const bool soft = targets.cols() > 1;
    std::vector<Scalar> scratch(gradient ? 0 : classes);
    double total = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      const Index start = row * outputs.cols();
      const std::span<const Scalar> x(outputs.data() + start, classes);
      const std::span<Scalar> work(gradient ? gradient->data() + start : scratch.data(), classes);
      if (soft) {
        total += evaluate_soft_row(x, {targets.data() + start, classes}, work);
        continue;
      }
      const auto target = static_cast<std::size_t>(targets(row, 0));
      assert(target < classes && "the data set checks its labels");
      total += evaluate_row(x, target, work);
    }
    return total;
  }

 private:
  // The loss of one row whose target is a probability for each class: sum of q (log_sum - x), with q the
  // smoothed probabilities; `gradient` becomes its derivative. With a 1 among zeros it is that of the class.
  double evaluate_soft_row(std::span<const Scalar> x, std::span<const Scalar> probabilities,
                           std::span<Scalar> gradient) const {
    const Scalar largest = row_max(x);
    exponentials(x, largest, gradient);
    const double sum = row_sum(gradient);
    const double log_sum = static_cast<double>(largest) + std::log(sum);
    const double share = smoothing_ / static_cast<double>(x.size());
    double total = 0;
    double loss = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double q = (1 - smoothing_) * static_cast<double>(probabilities[i]) + share;
      total += q;
      loss += q * (log_sum - static_cast<double>(x[i]));
    }
    // In the steps of evaluate_row, so that a one-hot row gives its bits.
    const auto scale = static_cast<Scalar>(total / sum);
    const auto everywhere = static_cast<Scalar>(share);
    for (std::size_t i = 0; i < x.size(); ++i) {
      gradient[i] = gradient[i] * scale - everywhere;
      const auto own = static_cast<Scalar>((1 - smoothing_) * static_cast<double>(probabilities[i]));
      gradient[i] -= own;
    }
    return loss;
  }

  // The loss of one row; `gradient` becomes its derivative.
  double evaluate_row(std::span<const Scalar> x, std::size_t target, std::span<Scalar> gradient) const {
    const Scalar largest = row_max(x);
    exponentials(x, largest, gradient);
    const double sum = row_sum(gradient);
    const double log_sum = static_cast<double>(largest) + std::log(sum);
    const auto classes = static_cast<double>(x.size());

    const auto scale = static_cast<Scalar>(1 / sum);
    const auto everywhere = static_cast<Scalar>(smoothing_ / classes);
    for (Scalar& g : gradient) g = g * scale - everywhere;
    gradient[target] -= static_cast<Scalar>(1 - smoothing_);

    // Without smoothing the second term is 0, or NaN where an output of any class is not finite: as it
    // should.
    return (1 - smoothing_) * (log_sum - static_cast<double>(x[target])) +
           smoothing_ * (log_sum - row_sum(x) / classes);
  }

  double smoothing_;
};

}  // namespace

LossEntry softmax_cross_entropy_entry() {
  return {.name = "softmax_cross_entropy",
          .help =
              "-log of the target's softmax probability; label_smoothing spreads a part over all classes. "
              "Labels are class numbers, or a row of probabilities, one for each class",
          .options = {"train.label_smoothing"},
          .make = [](const LossOptions& options) {
            return std::make_unique<SoftmaxCrossEntropy>(options.label_smoothing);
          }};
}

}  // namespace lockstep
