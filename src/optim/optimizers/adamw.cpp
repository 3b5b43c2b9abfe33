#include "adam_moments.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {
namespace {

class AdamW final : public Optimizer {
 public:
  explicit AdamW(const OptimizerOptions& options) : options_(options) {}

  int slots() const override { return 2; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const AdamCoefficients c(options_, info.step);
    const auto lr = static_cast<Scalar>(info.lr);
    const Scalar scale = info.gradient_scale;
    const auto kept = static_cast<Scalar>(1 - info.lr * info.weight_decay);
    Scalar* w = slice.weights.data();
    const Scalar* g = slice.gradient.data();
    Scalar* mean = slice.slots[0].data();
    Scalar* square = slice.slots[1].data();
    const std::size_t n = slice.weights.size();
    for (std::size_t i = 0; i < n; ++i) {
      const Scalar weight = w[i];
      w[i] = kept * weight - lr * adam_ratio(c, scale * g[i], mean[i], square[i]);
    }
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

OptimizerEntry adamw_entry() {
  return {.name = "adamw",
          .help = "Adam with weight decay apart from the gradient (Loshchilov & Hutter 2019)",
          .options = {"train.beta1", "train.beta2", "train.epsilon", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<AdamW>(options); }};
}

}  // namespace lockstep
