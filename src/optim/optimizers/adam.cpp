#include "adam_moments.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {
namespace {

class Adam final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return 2; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const AdamCoefficients c(options_, info.step);
    const auto lr = static_cast<Scalar>(info.lr);
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    const auto rule = [=](Scalar weight, Scalar g, Scalar& mean, Scalar& square) {
      return weight - lr * adam_ratio(c, g + weight_decay * weight, mean, square);
    };
    update_each(slice, info, rule, slice.slots[0].data(), slice.slots[1].data());
  }
};

class AdamW final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return 2; }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    adamw_step(options_, slice, info);
  }
};

class Lamb final : public Optimizer {
 public:
  using Optimizer::Optimizer;

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
};

constexpr double kBase = 0.96;  // the base in the paper's schedule of momenta, and in PyTorch's

// Dozat 2016, algorithm 2 with its schedule of momenta, as torch.optim.NAdam has it: momentum in step t is
// beta1 * (1 - 0.5 * 0.96^(t * momentum_decay)), and a step takes the momentum of the next one already.
class NAdam final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return 2; }

  double momentum_product(Index step) const override {
    constexpr double kNothing = 1e-17;  // beside 1
    const double decay = std::pow(kBase, options_.momentum_decay);
    double power = 1;
    double product = 1;
    for (Index t = 1; t <= step && product > kNothing; ++t) {
      power *= decay;
      product *= options_.beta1 * (1 - 0.5 * power);
    }
    return product > kNothing ? product : 0;
  }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const AdamCoefficients c(options_, info.step);
    const double next = momentum(info.step + 1);
    const auto of_gradient = static_cast<Scalar>((1 - momentum(info.step)) / (1 - info.momentum_product));
    const auto of_mean = static_cast<Scalar>(next / (1 - info.momentum_product * next));
    const auto lr = static_cast<Scalar>(info.lr);
    const auto weight_decay = static_cast<Scalar>(info.weight_decay);
    const auto rule = [=](Scalar weight, Scalar scaled, Scalar& mean, Scalar& square) {
      const Scalar g = scaled + weight_decay * weight;
      mean = c.beta1 * mean + c.rest1 * g;
      square = c.beta2 * square + c.rest2 * (g * g);
      return weight - lr * ((of_gradient * g + of_mean * mean) / (std::sqrt(square) * c.unbias2 + c.epsilon));
    };
    update_each(slice, info, rule, slice.slots[0].data(), slice.slots[1].data());
  }

 private:
  double momentum(Index step) const {
    const double exponent = static_cast<double>(step) * options_.momentum_decay;
    return options_.beta1 * (1 - 0.5 * std::pow(kBase, exponent));
  }
};

}  // namespace

std::vector<OptimizerEntry> adam_optimizers() {
  return {
      {.name = "adam",
       .help = "Adam (Kingma & Ba 2015), weight decay added to the gradient",
       .options = {"train.beta1", "train.beta2", "train.epsilon", "train.weight_decay"},
       .make = [](const OptimizerOptions& options) { return std::make_unique<Adam>(options); }},
      {.name = "adamw",
       .help = "Adam with weight decay apart from the gradient (Loshchilov & Hutter 2019)",
       .options = {"train.beta1", "train.beta2", "train.epsilon", "train.weight_decay"},
       .make = [](const OptimizerOptions& options) { return std::make_unique<AdamW>(options); }},
      {.name = "lamb",
       .help = "Adam scaled layer by layer, for large batches (You et al. 2019, arXiv 1904.00962)",
       .options = {"train.beta1", "train.beta2", "train.epsilon", "train.weight_decay"},
       .make = [](const OptimizerOptions& options) { return std::make_unique<Lamb>(options); }},
      {.name = "nadam",
       .help = "Adam with Nesterov's momentum, which rises (Dozat 2016), weight decay added to the gradient",
       .options = {"train.beta1", "train.beta2", "train.epsilon", "train.momentum_decay",
                   "train.weight_decay"},
       .make = [](const OptimizerOptions& options) { return std::make_unique<NAdam>(options); }}};
}

}  // namespace lockstep
