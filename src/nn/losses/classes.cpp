// Losses of one class of several.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/loss.h"
#include "row_reductions.h"

namespace lockstep {
namespace {

// e = exp(x - largest), which cannot overflow.
void exponentials(std::span<const Scalar> x, Scalar largest, std::span<Scalar> e) {
  for (std::size_t i = 0; i < e.size(); ++i) e[i] = exp_nonpositive(x[i] - largest);
}

// A loss of each row, whose target is a class.
class ClassLoss : public Loss {
 public:
  TargetKind targets() const override { return TargetKind::kClass; }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    const Index classes = outputs.cols();
    std::vector<Scalar> scratch(static_cast<std::size_t>(gradient ? 0 : classes));
    double total = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      const Range own{row * classes, (row + 1) * classes};
      total += evaluate_row(part(outputs.values(), own), rows_of(targets, {row, row + 1}).values(),
                            gradient ? part(gradient->values(), own) : scratch);
    }
    return total;
  }

 protected:
  // The loss of one row; `gradient` becomes its derivative.
  virtual double evaluate_row(std::span<const Scalar> x, std::span<const Scalar> targets,
                              std::span<Scalar> gradient) const = 0;

  static std::size_t class_named(std::span<const Scalar> targets, [[maybe_unused]] std::size_t classes) {
    const auto target = static_cast<std::size_t>(targets[0]);
    assert(target < classes && "the data set checks its labels");
    return target;
  }
};

// Cross entropy against 1 - smoothing on the target class plus smoothing / classes on every class (Szegedy et
// al. 2016, section 7).
class SoftmaxCrossEntropy final : public ClassLoss {
 public:
  explicit SoftmaxCrossEntropy(double smoothing) : smoothing_(smoothing) {}

  bool takes_probabilities() const override { return true; }

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

  double evaluate_row(std::span<const Scalar> x, std::span<const Scalar> targets,
                      std::span<Scalar> gradient) const override {
    if (targets.size() > 1) return evaluate_soft_row(x, targets, gradient);
    const std::size_t target = class_named(targets, x.size());
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

// With p the softmax probability of the target's class and `miss` = 1 - p: cross entropy times miss^gamma.
class SoftmaxFocal final : public ClassLoss {
 public:
  explicit SoftmaxFocal(double gamma) : gamma_(static_cast<Scalar>(gamma)) {}

 private:
  double evaluate_row(std::span<const Scalar> x, std::span<const Scalar> targets,
                      std::span<Scalar> gradient) const override {
    const std::size_t target = class_named(targets, x.size());
    const Scalar largest = row_max(x);
    exponentials(x, largest, gradient);
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

// The class other than the target with the highest output, the first of equals; the target itself if it is
// alone.
std::size_t find_rival(std::span<const Scalar> outputs, std::size_t target) {
  std::size_t rival = target;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (i != target && (rival == target || outputs[i] > outputs[rival])) rival = i;
  }
  return rival;
}

class MulticlassHinge final : public ClassLoss {
 public:
  OutputForm form() const override { return {TargetKind::kClass, Link::kIdentity}; }

 private:
  double evaluate_row(std::span<const Scalar> x, std::span<const Scalar> targets,
                      std::span<Scalar> gradient) const override {
    const std::size_t target = class_named(targets, x.size());
    const std::size_t rival = find_rival(x, target);
    const Scalar lack = rival == target ? 0 : 1 + x[rival] - x[target];
    std::ranges::fill(gradient, Scalar{0});
    if (lack > 0) {
      gradient[rival] = 1;
      gradient[target] = -1;
    }
    // The second term is 0, or NaN where an output of any class is not finite: as it should.
    return static_cast<double>(std::max(lack, Scalar{0})) + 0 * row_sum(x);
  }
};

}  // namespace

std::vector<LossEntry> class_losses() {
  return {
      {.name = "softmax_cross_entropy",
       .help = "-log of the target's softmax probability; label_smoothing spreads a part over all classes. "
               "Labels are class numbers, or a row of probabilities, one for each class",
       .options = {"train.label_smoothing"},
       .make =
           [](const LossOptions& options) {
             return std::make_unique<SoftmaxCrossEntropy>(options.label_smoothing);
           }},
      {.name = "softmax_focal",
       .help = "Softmax cross entropy x (1 - p)^focal_gamma, with p the probability of the target's class: "
               "well predicted samples count little (Lin et al. 2017)",
       .options = {"train.focal_gamma"},
       .make =
           [](const LossOptions& options) { return std::make_unique<SoftmaxFocal>(options.focal_gamma); }},
      {.name = "multiclass_hinge",
       .help = "max(0, 1 + highest output of another class - output of the target's) (Crammer & Singer "
               "2001); the outputs are scores",
       .options = {},
       .make = [](const LossOptions&) { return std::make_unique<MulticlassHinge>(); }}};
}

}  // namespace lockstep
