#include "lockstep/base/errors.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : Optimizer(options) {
    error_if(
        options.nesterov && options.momentum <= 0,
        "train.nesterov = true needs momentum, but train.momentum is 0; set train.momentum (0.9 is usual) "
        "or remove train.nesterov");
  }

  int slots() const override { return options_.momentum > 0 ? 1 : 0; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const auto lr = static_cast<Scalar>(info.lr);
    const auto momentum = static_cast<Scalar>(options_.momentum);
    Scalar* w = slice.weights.data();
    if (options_.momentum <= 0) {
      walk(slice, info, [=](std::size_t i, Scalar weight, Scalar g) { w[i] = weight - lr * g; });
    } else if (options_.nesterov) {
      Scalar* velocity = slice.slots[0].data();
      walk(slice, info, [=](std::size_t i, Scalar weight, Scalar g) {
        const Scalar v = momentum * velocity[i] + g;
        velocity[i] = v;
        w[i] = weight - lr * (g + momentum * v);
      });
    } else {
      Scalar* velocity = slice.slots[0].data();
      walk(slice, info, [=](std::size_t i, Scalar weight, Scalar g) {
        const Scalar v = momentum * velocity[i] + g;
        velocity[i] = v;
        w[i] = weight - lr * v;
      });
    }
  }

 private:
  // Calls apply(i, weight, gradient with weight decay) for each weight. A weight is read before anything is
  // written: arenas start at the same offset of a page, and a load behind a store to the same offset of
  // another page waits for it.
  template <class Apply>
  static void walk(const ParamSlice& slice, const StepInfo& info, const Apply& apply) {
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    const Scalar scale = info.gradient_scale;
    const Scalar* w = slice.weights.data();
    const Scalar* g = slice.gradient.data();
    const std::size_t n = slice.weights.size();
    for (std::size_t i = 0; i < n; ++i) {
      const Scalar weight = w[i];
      const Scalar mean = scale * g[i];
      apply(i, weight, mean + weight_decay * weight);
    }
  }
};

}  // namespace

OptimizerEntry sgd_entry() {
  return {.name = "sgd",
          .help = "Gradient descent; momentum and Nesterov's as in Sutskever et al. 2013, the lr outside",
          .options = {"train.momentum", "train.nesterov", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<Sgd>(options); }};
}

}  // namespace lockstep
