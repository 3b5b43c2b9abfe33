#include "lockstep/train/evaluation/metrics.h"
#include "class_counts.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

// The confusion matrix has classes^2 cells in memory and in each line of metrics.
constexpr Index kMaxConfusionClasses = 100;

// Rows and columns of a matrix for yes and no.
constexpr Index kYesNo = 2;

void count_classes(const MetricRows& rows, Index row, std::span<Index> cells) {
  const ConstMatrix& outputs = rows.outputs;
  ++at(cells, true_class(rows.targets, row) * outputs.cols() + predicted_class(outputs, row));
}

void count_answers(const MetricRows& rows, Index row, std::span<Index> cells) {
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    if (std::isnan(rows.targets(row, i))) continue;
    const Index truth = rows.targets(row, i) > Scalar{0.5} ? 1 : 0;
    const Index guess = rows.outputs(row, i) > 0 ? 1 : 0;
    ++at(cells, (i * kYesNo + truth) * kYesNo + guess);
  }
}

}  // namespace

void LossSums::add(const LossSums& other) {
  weight += other.weight;
  loss += other.loss;
  correct += other.correct;
}

TargetRule target_rule(const Loss& loss, Index outputs) {
  const OutputForm form = loss.form();
  return {.classes = form.targets == TargetKind::kClass ? outputs : 0,
          .unit_interval = form.targets == TargetKind::kBinary,
          .non_negative = form.power >= 1,
          .positive = form.power >= 2,
          .may_miss = loss.takes_missing_targets()};
}

Index true_class(const ConstMatrix& targets, Index row) {
  return class_of({targets.data() + row * targets.cols(), static_cast<std::size_t>(targets.cols())});
}

double share_of_class(const ConstMatrix& targets, Index row, Index of_class) {
  if (targets.cols() > 1) return static_cast<double>(targets(row, of_class));
  return true_class(targets, row) == of_class ? 1 : 0;
}

Index predicted_class(const ConstMatrix& outputs, Index row) {
  const Scalar* first = outputs.data() + row * outputs.cols();
  return std::max_element(first, first + outputs.cols()) - first;
}

namespace {

double count_right_classes(const ConstMatrix& outputs, const ConstMatrix& targets,
                           const SampleWeights& weights) {
  double right = 0;
  for (Index row = 0; row < outputs.rows(); ++row) {
    right += predicted_class(outputs, row) == true_class(targets, row) ? weights[row] : 0;
  }
  return right;
}

// The mean over the outputs of a row, so that a row counts as one sample.
double count_right_sides(const ConstMatrix& outputs, const ConstMatrix& targets,
                         const SampleWeights& weights) {
  double right = 0;
  for (Index row = 0; row < outputs.rows(); ++row) {
    for (Index i = 0; i < outputs.cols(); ++i) {
      if (std::isnan(targets(row, i))) continue;
      right += (outputs(row, i) > 0) == (targets(row, i) > Scalar{0.5}) ? weights[row] : 0;
    }
  }
  return right / static_cast<double>(outputs.cols());
}

}  // namespace

double count_correct(TargetKind kind, const ConstMatrix& outputs, const ConstMatrix& targets,
                     const SampleWeights& weights) {
  switch (kind) {
    case TargetKind::kClass:
      return count_right_classes(outputs, targets, weights);
    case TargetKind::kBinary:
      return count_right_sides(outputs, targets, weights);
    case TargetKind::kValue:
      return 0;
  }
  return 0;
}

double count_in_top_k(const ConstMatrix& outputs, const ConstMatrix& targets, const SampleWeights& weights,
                      Index k) {
  double inside = 0;
  for (Index row = 0; row < outputs.rows(); ++row) {
    const Scalar* scores = outputs.data() + row * outputs.cols();
    const Index target = true_class(targets, row);
    Index before = 0;
    for (Index other = 0; other < outputs.cols(); ++other) {
      before += scores[other] > scores[target] || (scores[other] == scores[target] && other < target) ? 1 : 0;
    }
    inside += before < k ? weights[row] : 0;
  }
  return inside;
}

Index counted_cells(TargetKind targets, Index outputs) {
  if (targets == TargetKind::kValue || outputs > kMaxConfusionClasses) return 0;
  return targets == TargetKind::kClass ? outputs * outputs : outputs * (kYesNo * kYesNo);
}

void count_cells(TargetKind targets, const MetricRows& rows, std::span<Index> cells) {
  if (cells.empty()) return;
  for (Index row = 0; row < rows.outputs.rows(); ++row) {
    if (targets == TargetKind::kClass) {
      count_classes(rows, row, cells);
    } else {
      count_answers(rows, row, cells);
    }
  }
}

}  // namespace lockstep
