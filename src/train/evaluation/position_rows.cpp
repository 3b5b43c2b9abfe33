#include "lockstep/train/evaluation/position_rows.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

void PositionRows::fill(const MetricRows& records) {
  const Index positions = records.targets.cols();
  const Index classes = records.outputs.cols() / positions;
  const std::span<const Scalar> targets = records.targets.values();
  const bool copies = std::ranges::any_of(targets, [](Scalar target) { return std::isnan(target); });
  kept_outputs_.clear();
  kept_targets_.clear();
  weights_.clear();
  records_.clear();
  for (Index i = 0; i < records.targets.size(); ++i) {
    const Scalar target = at(targets, i);
    if (std::isnan(target)) continue;
    records_.push_back(i / positions);
    if (records.weights.given()) weights_.push_back(at(records.weights.values, i / positions));
    if (!copies) continue;
    const Scalar* outputs = records.outputs.data() + i * classes;
    kept_outputs_.insert(kept_outputs_.end(), outputs, outputs + classes);
    kept_targets_.push_back(target);
  }
  const auto rows = std::ssize(records_);
  outputs_.emplace(copies ? kept_outputs_.data() : records.outputs.data(), rows, classes);
  targets_.emplace(copies ? kept_targets_.data() : records.targets.data(), rows, 1);
}

}  // namespace lockstep
