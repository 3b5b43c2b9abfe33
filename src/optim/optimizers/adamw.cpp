#include "adam_moments.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {
namespace {

class AdamW final : public Optimizer {
 public:
  explicit AdamW(const OptimizerOptions& options) : options_(options) {}

  int slots() const override { return 2; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    adamw_step(options_, slice, info);
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
