// Adam needs the mean square of the gradient of each weight. For a matrix of n x m Adafactor keeps only the
// means of its rows and columns, n + m numbers: the mean square of weight (i, j) is estimated as
// row[i] * column[j] / mean(row), which is exact for squares of rank one. A vector keeps all of its own.
// The step, the gradient over the root of that, is then scaled down to a root mean square of 1 at most
// (clipping), since what is estimated lags behind gradients that grow.
#include <algorithm>
#include <cmath>

#include "lockstep/optim/optimizer.h"
#include "optim/slice_loops.h"

namespace lockstep {
namespace {

// Constants of the paper, section 9.
constexpr Scalar kAddedToSquares = 1e-30F;
constexpr double kLeastScale = 1e-3;
constexpr double kLargestStep = 1;

double root_mean_square(std::span<const Scalar> values) {
  return std::sqrt(sum_squares(values) / static_cast<double>(values.size()));
}

// Shazeer & Stern 2018, algorithms 4 and 5 without momentum; the learning rate is that of the run.
class Adafactor final : public Optimizer {
 public:
  using Optimizer::Optimizer;

  int slots() const override { return 2; }
  bool needs_whole_tensors() const override { return true; }

  Index slot_size(int slot, const TensorInfo& tensor) const override {
    if (is_factored(tensor)) return slot == 0 ? tensor.rows : tensor.columns;
    return slot == 0 ? tensor.size() : 0;
  }
  Index scratch_size(const TensorInfo& tensor) const override {
    return is_factored(tensor) ? tensor.columns : 0;
  }

  // The gradient becomes the direction of the step.
  void update(const ParamSlice& slice, const StepInfo& info) const override {
    const double beta2 = 1 - std::pow(static_cast<double>(info.step), -options_.beta2_decay);
    const std::span<Scalar> g = slice.gradient;
    for (Scalar& value : g) value *= info.gradient_scale;
    if (is_factored(*slice.tensor)) {
      update_factors(slice, beta2);
      divide_by_factors(slice);
    } else {
      divide_by_own(slice, beta2);
    }
    move(slice, info);
  }

 private:
  static bool is_factored(const TensorInfo& tensor) { return tensor.kind != TensorInfo::Kind::kVector; }

  static void update_factors(const ParamSlice& slice, double beta2) {
    const Index rows = slice.tensor->rows;
    const Index columns = slice.tensor->columns;
    const auto kept = static_cast<Scalar>(beta2);
    const auto rest = static_cast<Scalar>(1 - beta2);
    Scalar* sums = slice.scratch.data();
    std::fill_n(sums, columns, Scalar{0});
    for (Index i = 0; i < rows; ++i) {
      const std::span<const Scalar> row = part(slice.gradient, {i * columns, (i + 1) * columns});
      for (Index j = 0; j < columns; ++j) sums[j] += row.data()[j] * row.data()[j];
      const auto mean = static_cast<Scalar>(sum_squares(row) / static_cast<double>(columns));
      Scalar& of_row = at(slice.slots[0], i);
      of_row = kept * of_row + rest * (mean + kAddedToSquares);
    }
    const auto share = static_cast<Scalar>(1 / static_cast<double>(rows));
    Scalar* of_columns = slice.slots[1].data();
    for (Index j = 0; j < columns; ++j) {
      of_columns[j] = kept * of_columns[j] + rest * (sums[j] * share + kAddedToSquares);
    }
  }

  static void divide_by_factors(const ParamSlice& slice) {
    const Index rows = slice.tensor->rows;
    const Index columns = slice.tensor->columns;
    double sum = 0;
    for (const Scalar row : slice.slots[0]) sum += static_cast<double>(row);
    const auto mean = static_cast<Scalar>(sum / static_cast<double>(rows));
    Scalar* inverse = slice.scratch.data();
    const Scalar* of_columns = slice.slots[1].data();
    for (Index j = 0; j < columns; ++j) inverse[j] = 1 / std::sqrt(of_columns[j]);
    for (Index i = 0; i < rows; ++i) {
      const Scalar of_row = 1 / std::sqrt(at(slice.slots[0], i) / mean);
      Scalar* g = slice.gradient.data() + i * columns;
      for (Index j = 0; j < columns; ++j) g[j] *= of_row * inverse[j];
    }
  }

  static void divide_by_own(const ParamSlice& slice, double beta2) {
    const auto kept = static_cast<Scalar>(beta2);
    const auto rest = static_cast<Scalar>(1 - beta2);
    Scalar* g = slice.gradient.data();
    Scalar* square = slice.slots[0].data();
    const std::size_t n = slice.gradient.size();
    for (std::size_t i = 0; i < n; ++i) {
      const Scalar s = kept * square[i] + rest * (g[i] * g[i] + kAddedToSquares);
      square[i] = s;
      g[i] /= std::sqrt(s);
    }
  }

  void move(const ParamSlice& slice, const StepInfo& info) const {
    const double clip = std::max(1.0, root_mean_square(slice.gradient) / kLargestStep);
    const double scale =
        options_.scale_parameter ? std::max(kLeastScale, root_mean_square(slice.weights)) : 1.0;
    const auto factor = static_cast<Scalar>(info.lr * scale / clip);
    const auto kept = static_cast<Scalar>(1 - info.lr * info.weight_decay);
    Scalar* w = slice.weights.data();
    const Scalar* direction = slice.gradient.data();
    const std::size_t n = slice.weights.size();
    for (std::size_t i = 0; i < n; ++i) w[i] = kept * w[i] - factor * direction[i];
  }
};

}  // namespace

OptimizerEntry adafactor_entry() {
  return {.name = "adafactor",
          .help = "Mean squares of rows and columns instead of weights: little state (Shazeer & Stern 2018)",
          .options = {"train.beta2_decay", "train.scale_parameter", "train.weight_decay"},
          .make = [](const OptimizerOptions& options) { return std::make_unique<Adafactor>(options); }};
}

}  // namespace lockstep
