#include "lockstep/nn/loss.h"

#include <optional>
#include <vector>

#include "lockstep/math/eigen_matrix.h"

namespace lockstep {
namespace {

Link usual_link(TargetKind kind) {
  switch (kind) {
    case TargetKind::kClass:
      return Link::kSoftmax;
    case TargetKind::kBinary:
      return Link::kLogit;
    case TargetKind::kValue:
      return Link::kIdentity;
  }
  return Link::kIdentity;
}

// Sample by sample: a loss is a sum over rows, in their order, so weights of 1 change no bit of it. Each
// sample has so many rows.
double sum_weighted(const Loss& loss, Index rows_of_sample, const ConstMatrix& outputs,
                    const ConstMatrix& targets, const SampleWeights& weights, Matrix* gradient) {
  if (!weights.given()) return loss.evaluate(outputs, targets, gradient);
  double total = 0;
  for (Index sample = 0; sample < outputs.rows() / rows_of_sample; ++sample) {
    const Range here{sample * rows_of_sample, (sample + 1) * rows_of_sample};
    std::optional<Matrix> slopes;
    if (gradient != nullptr)
      slopes.emplace(gradient->data() + here.begin * gradient->cols(), rows_of_sample, gradient->cols());
    const double value =
        loss.evaluate(rows_of(outputs, here), rows_of(targets, here), slopes ? &*slopes : nullptr);
    total += weights[sample] * value;
    if (slopes) as_array(*slopes) *= static_cast<Scalar>(weights[sample]);
  }
  return total;
}

}  // namespace

OutputForm::OutputForm(TargetKind kind) : OutputForm(kind, usual_link(kind)) {}

double evaluate_weighted(const Loss& loss, const ConstMatrix& outputs, const ConstMatrix& targets,
                         const SampleWeights& weights, Matrix* gradient) {
  return sum_weighted(loss, 1, outputs, targets, weights, gradient);
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
  for (Index row = 0; row < rows; ++row)
    as_eigen(targets_of_rows).row(row) = as_eigen(targets).row(row / members);
  const ConstMatrix all(outputs.data(), rows, columns);
  Matrix slopes(gradient.data(), rows, columns);
  const double total = sum_weighted(loss, members, all, targets_of_rows, weights, &slopes);
  as_array(slopes) /= static_cast<Scalar>(members);
  return total / static_cast<double>(members);
}

}  // namespace lockstep
