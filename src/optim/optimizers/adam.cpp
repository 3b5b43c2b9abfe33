#include "adam_moments.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {
namespace {

class Adam final : public Optimizer {
 public:
  explicit Adam(const OptimizerOptions& options) : options_(options) {}

  int slots() const override { return 2; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const AdamCoefficients c(options_, info.step);
    const auto lr = static_cast<Scalar>(info.lr);
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    const Scalar scale = info.gradient_scale;
    Scalar* w = slice.weights.data();
    const Scalar* g = slice.gradient.data();
    Scalar* mean = slice.slots[0].data();
    Scalar* square = slice.slots[1].data();
    const std::size_t n = slice.weights.size();
    for (std::size_t i = 0; i < n; ++i) {
      const Scalar weight = w[i];
      const Scalar gradient = scale * g[i];
      w[i] = weight - lr * adam_ratio(c, gradient + weight_decay * weight, mean[i], square[i]);
    }
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

OptimizerEntry adam_entry() {
  return {.name = "adam",
          .help = "Adam (Kingma & Ba 2015), weight decay added to the gradient",
          .options = {"train.beta1", "train.beta2", "train.epsilon", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<Adam>(options); }};
}

}  // namespace lockstep
