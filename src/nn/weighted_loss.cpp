#include <optional>

#include "lockstep/nn/loss.h"

namespace lockstep {

// Row by row: a loss is a sum over rows, in their order, so weights of 1 change no bit of it.
double evaluate_weighted(const Loss& loss, const ConstMatrix& outputs, const ConstMatrix& targets,
                         const SampleWeights& weights, Matrix* gradient) {
  if (!weights.given()) return loss.evaluate(outputs, targets, gradient);
  double total = 0;
  for (Index row = 0; row < outputs.rows(); ++row) {
    const Range here{row, row + 1};
    std::optional<Matrix> slopes;
    if (gradient != nullptr) slopes.emplace(gradient->data() + row * gradient->cols(), 1, gradient->cols());
    const double value =
        loss.evaluate(rows_of(outputs, here), rows_of(targets, here), slopes ? &*slopes : nullptr);
    total += weights[row] * value;
    if (slopes) *slopes *= static_cast<Scalar>(weights[row]);
  }
  return total;
}

}  // namespace lockstep
