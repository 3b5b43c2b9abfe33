// A matrix moves along the orthogonal matrix that is nearest to the mean of its gradients: all directions
// count alike, whatever the singular values of that mean are. Tensors that are no matrices between hidden
// layers (biases, the weights of normalisation, embeddings, the output layer) take steps of AdamW instead,
// with a learning rate of their own.
#include <algorithm>
#include <cmath>

#include "adam_moments.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/kernels.h"
#include "lockstep/optim/optimizer.h"
#include "optim/slice_loops.h"

namespace lockstep {
namespace {

constexpr double kMomentum = 0.95;
constexpr double kAddedToNorm = 1e-7;

// Jordan 2024, https://kellerjordan.github.io/posts/muon, with Nesterov's momentum. The step is scaled by
// sqrt(max(1, rows / columns)); weight decay is apart from the gradient. Slot 0 holds the mean of the
// gradients, slot 1 AdamW's mean of their squares.
class Muon final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return 2; }
  bool needs_whole_tensors() const override { return true; }

  Index slot_size(int slot, const TensorInfo& tensor) const override {
    return slot == 1 && is_hidden_matrix(tensor) ? 0 : tensor.size();
  }
  Index scratch_size(const TensorInfo& tensor) const override {
    if (!is_hidden_matrix(tensor)) return 0;
    return copy_size(tensor) + orthogonalise_scratch(std::min(tensor.rows, tensor.columns));
  }

  void update(const ParamSlice& slice, const StepInfo& info) const override {
    if (is_hidden_matrix(*slice.tensor)) {
      take_mean(slice, info.gradient_scale);
      move(slice, info);
    } else {
      StepInfo own = info;
      own.lr = options_.adamw_lr_multiplier * info.lr;
      adamw_step(options_, slice, own);
    }
  }

 private:
  static bool is_hidden_matrix(const TensorInfo& tensor) { return tensor.kind == TensorInfo::Kind::kMatrix; }
  static Index copy_size(const TensorInfo& tensor) { return round_up(tensor.size(), kAlignment); }

  // Nesterov's look-ahead momentum, written over the gradient.
  void take_mean(const ParamSlice& slice, Scalar scale) const {
    const auto beta = static_cast<Scalar>(options_.momentum_or(kMomentum));
    const auto rest = static_cast<Scalar>(1 - options_.momentum_or(kMomentum));
    Scalar* gradient = slice.gradient.data();
    Scalar* mean = slice.slots[0].data();
    const std::size_t n = slice.gradient.size();
    for (std::size_t i = 0; i < n; ++i) {
      const Scalar g = scale * gradient[i];
      const Scalar m = beta * mean[i] + rest * g;
      mean[i] = m;
      gradient[i] = rest * g + beta * m;
    }
  }

  // A matrix that is higher than wide is turned around: the products of the iteration are smaller so.
  static void move(const ParamSlice& slice, const StepInfo& info) {
    const TensorInfo& tensor = *slice.tensor;
    const bool turned = tensor.rows > tensor.columns;
    const std::span<Scalar> g = slice.gradient;
    const std::span<Scalar> copy = part(slice.scratch, {0, tensor.size()});
    const auto inverse = static_cast<Scalar>(1 / (std::sqrt(sum_squares(g)) + kAddedToNorm));
    if (turned) {
      transpose(as_matrix(std::span<const Scalar>(g), tensor.rows, tensor.columns), copy.data(), tensor.rows);
      as_array(copy) *= inverse;
    } else {
      as_array(copy) = inverse * as_array(g);
    }
    orthogonalise(copy, g, std::min(tensor.rows, tensor.columns), std::max(tensor.rows, tensor.columns),
                  part(slice.scratch, {copy_size(tensor), std::ssize(slice.scratch)}));
    if (turned) {
      transpose(as_matrix(std::span<const Scalar>(g), tensor.columns, tensor.rows), copy.data(),
                tensor.columns);
    }
    const double ratio = static_cast<double>(tensor.rows) / static_cast<double>(tensor.columns);
    const auto factor = static_cast<Scalar>(info.lr * std::sqrt(std::max(1.0, ratio)));
    const auto kept = static_cast<Scalar>(1 - info.lr * info.weight_decay);
    as_array(slice.weights) = kept * as_array(slice.weights) - factor * as_array(turned ? copy : g);
  }
};

}  // namespace

OptimizerEntry muon_entry() {
  return {.name = "muon",
          .help = "Orthogonal steps of matrices between hidden layers, AdamW for the rest (Jordan 2024)",
          .options = {"train.momentum", "train.adamw_lr_multiplier", "train.beta1", "train.beta2",
                      "train.epsilon", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<Muon>(options); }};
}

}  // namespace lockstep
