#include "class_counts.h"

#include <cmath>

#include "lockstep/train/evaluation/metrics.h"

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
