#include <cmath>

#include "lockstep/optim/optimizer.h"
#include "optim/slice_loops.h"

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
    const auto rule = [=](Scalar weight, Scalar scaled, Scalar& squares) {
      const Scalar g = scaled + weight_decay * weight;
      squares = squares + g * g;
      return weight - lr * (g / (std::sqrt(squares) + epsilon));
    };
    update_each(slice, info, rule, slice.slots[0].data());
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
