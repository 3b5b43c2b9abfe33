#include "lockstep/base/errors.h"
#include "lockstep/optim/optimizer.h"
#include "optim/slice_loops.h"

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
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    if (options_.momentum <= 0) {
      const auto rule = [=](Scalar weight, Scalar g) { return weight - lr * (g + weight_decay * weight); };
      return update_each(slice, info, rule);
    }
    Scalar* const velocities = slice.slots[0].data();
    if (options_.nesterov) {
      const auto rule = [=](Scalar weight, Scalar scaled, Scalar& velocity) {
        const Scalar g = scaled + weight_decay * weight;
        velocity = momentum * velocity + g;
        return weight - lr * (g + momentum * velocity);
      };
      update_each(slice, info, rule, velocities);
    } else {
      const auto rule = [=](Scalar weight, Scalar scaled, Scalar& velocity) {
        velocity = momentum * velocity + (scaled + weight_decay * weight);
        return weight - lr * velocity;
      };
      update_each(slice, info, rule, velocities);
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
