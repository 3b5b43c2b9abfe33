#include <cmath>

#include "lockstep/optim/optimizer.h"

namespace lockstep {
namespace {

class Adagrad final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return 1; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const auto epsilon = static_cast<Scalar>(options_.epsilon);
    const auto lr = static_cast<Scalar>(info.lr);
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    const Scalar scale = info.gradient_scale;
    Scalar* w = slice.weights.data();
    const Scalar* gradient = slice.gradient.data();
    Scalar* squares = slice.slots[0].data();
    const std::size_t n = slice.weights.size();
    for (std::size_t i = 0; i < n; ++i) {
      const Scalar weight = w[i];
      const Scalar mean = scale * gradient[i];
      const Scalar g = mean + weight_decay * weight;
      const Scalar sum = squares[i] + g * g;
      squares[i] = sum;
      w[i] = weight - lr * (g / (std::sqrt(sum) + epsilon));
    }
  }
};

}  // namespace

OptimizerEntry adagrad_entry() {
  return {.name = "adagrad",
          .help = "Gradient over the root of the sum of its squares so far (Duchi et al. 2011)",
          .options = {"train.epsilon", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<Adagrad>(options); }};
}

}  // namespace lockstep
