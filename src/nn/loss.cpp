#include "lockstep/nn/loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
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

class OverPositions final : public Loss {
 public:
  OverPositions(std::unique_ptr<Loss> loss, const SequenceShape& output)
      : loss_(std::move(loss)), positions_(output.positions) {
    const OutputForm form = loss_->form();
    columns_ = form.targets == TargetKind::kClass ? 1 : output.channels / form.outputs_per_target();
  }

  TargetKind targets() const override { return loss_->targets(); }
  OutputForm form() const override {
    OutputForm form = loss_->form();
    form.positions = positions_;
    return form;
  }
  // Some of several targets of a position are what the loss of a position has to leave out.
  bool takes_missing_targets() const override { return columns_ == 1 || loss_->takes_missing_targets(); }
  const Loss& of_position() const override { return *loss_; }
  void weigh_classes(std::span<const Scalar> of_class) override { of_class_ = of_class; }
  std::span<const Scalar> class_weights() const override { return of_class_; }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    const Index rows = outputs.rows() * positions_;
    const ConstMatrix all(outputs.data(), rows, outputs.cols() / positions_);
    const ConstMatrix of_rows(targets.data(), rows, targets.cols() / positions_);
    double total = 0;
    for (Index begin = 0; begin < rows;) {
      const bool missing = is_missing(of_rows, begin);
      Index end = begin + 1;
      while (end < rows && is_missing(of_rows, end) == missing) ++end;
      total += missing ? pass_over({begin, end}, all, gradient)
                       : evaluate_present({begin, end}, all, of_rows, gradient);
      begin = end;
    }
    return total / static_cast<double>(positions_);
  }

 private:
  static bool is_missing(const ConstMatrix& targets, Index row) {
    const std::span<const Scalar> of_row = rows_of(targets, {row, row + 1}).values();
    return std::ranges::all_of(of_row, [](Scalar target) { return std::isnan(target); });
  }

  double evaluate_present(Range rows, const ConstMatrix& all, const ConstMatrix& targets,
                          Matrix* gradient) const {
    thread_local std::vector<Scalar> weights;
    weights.clear();
    for (Index row = rows.begin; row < rows.end && !of_class_.empty(); ++row)
      weights.push_back(at(of_class_, static_cast<Index>(std::ceil(targets(row, 0) - Scalar{0.5}))));
    std::optional<Matrix> slopes;
    if (gradient != nullptr)
      slopes.emplace(gradient->data() + rows.begin * all.cols(), rows.size(), all.cols());
    const double total = sum_weighted(*loss_, 1, rows_of(all, rows), rows_of(targets, rows),
                                      {.values = weights}, slopes ? &*slopes : nullptr);
    if (slopes) as_array(*slopes) /= static_cast<Scalar>(positions_);
    return total;
  }

  // Beside a missing target an output that is not finite still shows: x - x is 0 or NaN.
  static double pass_over(Range rows, const ConstMatrix& all, Matrix* gradient) {
    if (gradient != nullptr) {
      const Range numbers{rows.begin * all.cols(), rows.end * all.cols()};
      std::ranges::fill(part(gradient->values(), numbers), Scalar{0});
    }
    double total = 0;
    for (Index row = rows.begin; row < rows.end; ++row)
      total += static_cast<double>(all(row, 0) - all(row, 0));
    return total;
  }

  std::unique_ptr<Loss> loss_;
  Index positions_;
  Index columns_;  // targets of a position
  std::span<const Scalar> of_class_;
};

}  // namespace

std::unique_ptr<Loss> over_positions(std::unique_ptr<Loss> loss, const Shape& output, bool named) {
  const auto sequence = as_sequence(output);
  if (!sequence || (named && loss->targets() != TargetKind::kClass)) return loss;
  return std::make_unique<OverPositions>(std::move(loss), *sequence);
}

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

// One line for each list in losses/.
std::vector<LossEntry> class_losses();
std::vector<LossEntry> pointwise_losses();
std::vector<LossEntry> value_losses();

// The order in which help has them.
constexpr auto kLossOrder = std::to_array<std::string_view>(
    {"softmax_cross_entropy", "binary_cross_entropy", "mean_squared_error", "mean_absolute_error", "huber",
     "quantile", "poisson", "tweedie", "gamma", "cosine_distance", "softmax_focal", "binary_focal",
     "multiclass_hinge", "binary_hinge"});

std::span<const LossEntry> loss_catalog() {
  static const std::vector<LossEntry> kEntries =
      in_order<LossEntry>(kLossOrder, {class_losses(), pointwise_losses(), value_losses()});
  return kEntries;
}

}  // namespace lockstep
