#include "lockstep/train/evaluation/position_rows.h"

#include <cmath>

namespace lockstep {

void PositionRows::fill(const MetricRows& records) {
  const Index positions = records.targets.cols();
  const Index classes = records.outputs.cols() / positions;
  kept_outputs_.clear();
  kept_targets_.clear();
  weights_.clear();
  records_.clear();
  for (Index i = 0; i < records.targets.size(); ++i) {
    const Scalar target = records.targets.data()[i];
    if (std::isnan(target)) continue;
    const Scalar* outputs = records.outputs.data() + i * classes;
    kept_outputs_.insert(kept_outputs_.end(), outputs, outputs + classes);
    kept_targets_.push_back(target);
    records_.push_back(i / positions);
    if (records.weights.given()) weights_.push_back(at(records.weights.values, i / positions));
  }
  const auto rows = std::ssize(kept_targets_);
  outputs_.emplace(kept_outputs_.data(), rows, classes);
  targets_.emplace(kept_targets_.data(), rows, 1);
}

}  // namespace lockstep
