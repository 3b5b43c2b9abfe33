#include <optional>
#include <vector>

#include "lockstep/nn/ensemble.h"

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

// The outputs of a sample's members are rows of their own, each with the targets and the weight of the
// sample.
double evaluate_members(const Loss& loss, Index members, const ConstMatrix& outputs,
                        const ConstMatrix& targets, const SampleWeights& weights, Matrix& gradient) {
  if (members == 1) return evaluate_weighted(loss, outputs, targets, weights, &gradient);
  const Index rows = outputs.rows() * members;
  const Index columns = outputs.cols() / members;
  thread_local std::vector<Scalar> repeated;
  repeated.resize(static_cast<std::size_t>(rows * targets.cols()));
  Matrix targets_of_rows(repeated.data(), rows, targets.cols());
  for (Index row = 0; row < rows; ++row) targets_of_rows.row(row) = targets.row(row / members);
  const ConstMatrix all(outputs.data(), rows, columns);
  const ConstMatrix wanted(repeated.data(), rows, targets.cols());
  Matrix slopes(gradient.data(), rows, columns);
  double total = 0;
  if (!weights.given()) {
    total = loss.evaluate(all, wanted, &slopes);
  } else {
    for (Index row = 0; row < outputs.rows(); ++row) {
      const Range here{row * members, (row + 1) * members};
      Matrix own(slopes.data() + here.begin * columns, members, columns);
      total += weights[row] * loss.evaluate(rows_of(all, here), rows_of(wanted, here), &own);
      own *= static_cast<Scalar>(weights[row]);
    }
  }
  slopes /= static_cast<Scalar>(members);
  return total / static_cast<double>(members);
}

}  // namespace lockstep
