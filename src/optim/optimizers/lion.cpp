#include "lockstep/optim/optimizer.h"
#include "optim/slice_loops.h"

namespace lockstep {
namespace {

constexpr double kBeta2 = 0.99;  // the value in section 4 of the paper

Scalar sign(Scalar value) {
  return static_cast<Scalar>(value > 0) - static_cast<Scalar>(value < 0);
}

// Chen et al. 2023, algorithm 2. A step is along the signs of a mean that forgets with beta1; the mean that
// is remembered forgets with beta2.
class Lion final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return 1; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const auto beta1 = static_cast<Scalar>(options_.beta1);
    const auto rest1 = static_cast<Scalar>(1 - options_.beta1);
    const auto beta2 = static_cast<Scalar>(options_.beta2_or(kBeta2));
    const auto rest2 = static_cast<Scalar>(1 - options_.beta2_or(kBeta2));
    const auto lr = static_cast<Scalar>(info.lr);
    const auto kept = static_cast<Scalar>(1 - info.lr * info.weight_decay);
    const auto rule = [=](Scalar weight, Scalar g, Scalar& mean) {
      const Scalar m = mean;
      mean = beta2 * m + rest2 * g;
      return kept * weight - lr * sign(beta1 * m + rest1 * g);
    };
    update_each(slice, info, rule, slice.slots[0].data());
  }
};

}  // namespace

OptimizerEntry lion_entry() {
  return {.name = "lion",
          .help = "The sign of a mean of the gradients, weight decay apart from it (Chen et al. 2023)",
          .options = {"train.beta1", "train.beta2", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<Lion>(options); }};
}

}  // namespace lockstep
