#include "adam_moments.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {
namespace {

class Lamb final : public Optimizer {
 public:
  explicit Lamb(const OptimizerOptions& options) : options_(options) {}

  int slots() const override { return 2; }
  bool uses_trust_ratio() const override { return true; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const AdamCoefficients c(options_, info.step);
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    const Scalar scale = info.gradient_scale;
    const Scalar* w = slice.weights.data();
    Scalar* g = slice.gradient.data();
    Scalar* mean = slice.slots[0].data();
    Scalar* square = slice.slots[1].data();
    const std::size_t n = slice.weights.size();
    for (std::size_t i = 0; i < n; ++i) {
      g[i] = adam_ratio(c, scale * g[i], mean[i], square[i]) + weight_decay * w[i];
    }
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

OptimizerEntry lamb_entry() {
  return {.name = "lamb",
          .help = "Adam scaled layer by layer, for large batches (You et al. 2019, arXiv 1904.00962)",
          .options = {"train.beta1", "train.beta2", "train.epsilon", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<Lamb>(options); }};
}

}  // namespace lockstep
