#include "lockstep/train/metrics.h"

#include <algorithm>

namespace lockstep {

void Tally::add(const Tally& other) {
  samples += other.samples;
  loss += other.loss;
  correct += other.correct;
}

TargetRule target_rule(const Loss& loss, Index outputs) {
  return {.classes = loss.targets() == TargetKind::kClass ? outputs : 0,
          .unit_interval = loss.targets() == TargetKind::kBinary};
}

Index predicted_class(const ConstMatrix& outputs, Index row) {
  const Scalar* first = outputs.data() + row * outputs.cols();
  return std::max_element(first, first + outputs.cols()) - first;
}

namespace {

double count_right_classes(const ConstMatrix& outputs, const ConstMatrix& targets) {
  Index right = 0;
  for (Index row = 0; row < outputs.rows(); ++row) {
    right += predicted_class(outputs, row) == static_cast<Index>(targets(row, 0)) ? 1 : 0;
  }
  return static_cast<double>(right);
}

// The mean over the outputs of a row, so that a row counts as one sample.
double count_right_sides(const ConstMatrix& outputs, const ConstMatrix& targets) {
  Index right = 0;
  for (Index i = 0; i < outputs.size(); ++i) {
    right += (outputs.data()[i] > 0) == (targets.data()[i] > Scalar{0.5}) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(outputs.cols());
}

}  // namespace

double count_correct(TargetKind kind, const ConstMatrix& outputs, const ConstMatrix& targets) {
  switch (kind) {
    case TargetKind::kClass:
      return count_right_classes(outputs, targets);
    case TargetKind::kBinary:
      return count_right_sides(outputs, targets);
    case TargetKind::kValue:
      return 0;
  }
  return 0;
}

double count_in_top_k(const ConstMatrix& outputs, const ConstMatrix& targets, Index k) {
  Index inside = 0;
  for (Index row = 0; row < outputs.rows(); ++row) {
    const Scalar* scores = outputs.data() + row * outputs.cols();
    const auto target = static_cast<Index>(targets(row, 0));
    Index before = 0;
    for (Index other = 0; other < outputs.cols(); ++other) {
      before += scores[other] > scores[target] || (scores[other] == scores[target] && other < target) ? 1 : 0;
    }
    inside += before < k ? 1 : 0;
  }
  return static_cast<double>(inside);
}

}  // namespace lockstep
