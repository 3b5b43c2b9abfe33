// Optimizers whose step on a weight needs its own gradient and numbers alone; those with the moments of Adam
// are in adam.cpp.
#include <cmath>

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

constexpr double kBeta2 = 0.99;  // the value in section 4 of the paper

Scalar sign(Scalar value) {
  return static_cast<Scalar>(value > 0) - static_cast<Scalar>(value < 0);
}

// Chen et al. 2023, algorithm 2. A step is along the signs of a mean that forgets with beta1; the mean that
// is remembered forgets with beta2.
class Lion final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return 1; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const auto beta1 = static_cast<Scalar>(options_.beta1);
    const auto rest1 = static_cast<Scalar>(1 - options_.beta1);
    const auto beta2 = static_cast<Scalar>(options_.beta2_or(kBeta2));
    const auto rest2 = static_cast<Scalar>(1 - options_.beta2_or(kBeta2));
    const auto lr = static_cast<Scalar>(info.lr);
    const auto kept = static_cast<Scalar>(1 - info.lr * info.weight_decay);
    const auto rule = [=](Scalar weight, Scalar g, Scalar& mean) {
      const Scalar m = mean;
      mean = beta2 * m + rest2 * g;
      return kept * weight - lr * sign(beta1 * m + rest1 * g);
    };
    update_each(slice, info, rule, slice.slots[0].data());
  }
};

}  // namespace

std::vector<OptimizerEntry> elementwise_optimizers() {
  return {{.name = "sgd",
           .help = "Gradient descent; momentum and Nesterov's as in Sutskever et al. 2013, the lr outside",
           .options = {"train.momentum", "train.nesterov", "train.weight_decay"},
           .make = [](const OptimizerOptions& options) { return std::make_unique<Sgd>(options); }},
          {.name = "adagrad",
           .help = "Gradient over the root of the sum of its squares so far (Duchi et al. 2011)",
           .options = {"train.epsilon", "train.weight_decay"},
           .make = [](const OptimizerOptions& options) { return std::make_unique<Adagrad>(options); }},
          {.name = "rmsprop",
           .help = "Gradient over its running root mean square (Tieleman & Hinton 2012), momentum on top",
           .options = {"train.rho", "train.momentum", "train.epsilon", "train.weight_decay"},
           .make = [](const OptimizerOptions& options) { return std::make_unique<RmsProp>(options); }},
          {.name = "lion",
           .help = "The sign of a mean of the gradients, weight decay apart from it (Chen et al. 2023)",
           .options = {"train.beta1", "train.beta2", "train.weight_decay"},
           .make = [](const OptimizerOptions& options) { return std::make_unique<Lion>(options); }}};
}

}  // namespace lockstep
