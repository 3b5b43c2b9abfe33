#include <cmath>

#include "lockstep/optim/optimizer.h"
#include "optim/slice_loops.h"

namespace lockstep {
namespace {

class RmsProp final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return options_.momentum > 0 ? 2 : 1; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const auto rho = static_cast<Scalar>(options_.rho);
    const auto rest = static_cast<Scalar>(1 - options_.rho);
    const auto epsilon = static_cast<Scalar>(options_.epsilon);
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    const auto lr = static_cast<Scalar>(info.lr);
    const auto momentum = static_cast<Scalar>(options_.momentum);
    // The gradient over its root mean square.
    const auto ratio = [=](Scalar weight, Scalar scaled, Scalar& square) {
      const Scalar g = scaled + weight_decay * weight;
      square = rho * square + rest * (g * g);
      return g / (std::sqrt(square) + epsilon);
    };
    Scalar* const squares = slice.slots[0].data();
    if (options_.momentum > 0) {
      const auto rule = [=](Scalar weight, Scalar scaled, Scalar& square, Scalar& velocity) {
        velocity = momentum * velocity + ratio(weight, scaled, square);
        return weight - lr * velocity;
      };
      update_each(slice, info, rule, squares, slice.slots[1].data());
    } else {
      const auto rule = [=](Scalar weight, Scalar scaled, Scalar& square) {
        return weight - lr * ratio(weight, scaled, square);
      };
      update_each(slice, info, rule, squares);
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
