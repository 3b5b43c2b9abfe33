#include <cmath>

#include "lockstep/optim/optimizer.h"

namespace lockstep {
namespace {

class RmsProp final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return options_.momentum > 0 ? 2 : 1; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const auto lr = static_cast<Scalar>(info.lr);
    Scalar* w = slice.weights.data();
    if (options_.momentum > 0) {
      const auto momentum = static_cast<Scalar>(options_.momentum);
      Scalar* velocity = slice.slots[1].data();
      walk(slice, info, [=](std::size_t i, Scalar weight, Scalar ratio) {
        const Scalar v = momentum * velocity[i] + ratio;
        velocity[i] = v;
        w[i] = weight - lr * v;
      });
    } else {
      walk(slice, info, [=](std::size_t i, Scalar weight, Scalar ratio) { w[i] = weight - lr * ratio; });
    }
  }

 private:
  // Calls apply(i, weight, gradient over root mean square) for each weight, after updating its mean square.
  template <class Apply>
  void walk(const ParamSlice& slice, const StepInfo& info, const Apply& apply) const {
    const auto rho = static_cast<Scalar>(options_.rho);
    const auto rest = static_cast<Scalar>(1 - options_.rho);
    const auto epsilon = static_cast<Scalar>(options_.epsilon);
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    const Scalar scale = info.gradient_scale;
    const Scalar* w = slice.weights.data();
    const Scalar* gradient = slice.gradient.data();
    Scalar* square = slice.slots[0].data();
    const std::size_t n = slice.weights.size();
    for (std::size_t i = 0; i < n; ++i) {
      const Scalar weight = w[i];
      const Scalar mean = scale * gradient[i];
      const Scalar g = mean + weight_decay * weight;
      const Scalar s = rho * square[i] + rest * (g * g);
      square[i] = s;
      apply(i, weight, g / (std::sqrt(s) + epsilon));
    }
  }
};

}  // namespace

OptimizerEntry rmsprop_entry() {
  return {.name = "rmsprop",
          .help = "Gradient over its running root mean square (Tieleman & Hinton 2012), momentum on top",
          .options = {"train.rho", "train.momentum", "train.epsilon", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<RmsProp>(options); }};
}

}  // namespace lockstep
