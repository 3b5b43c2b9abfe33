#include "lockstep/train/evaluation/metric.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/data/dataset.h"

namespace lockstep {

void PositionRows::fill(const MetricRows& records, Index positions, std::span<const Scalar> class_weights) {
  constexpr auto kIsMissing = [](Scalar target) { return std::isnan(target); };
  const Index columns = records.targets.cols() / positions;
  const Index width = records.outputs.cols() / positions;
  const std::span<const Scalar> targets = records.targets.values();
  const bool copies = std::ranges::any_of(targets, kIsMissing);
  kept_outputs_.clear();
  kept_targets_.clear();
  weights_.clear();
  present_.clear();
  numbers_.clear();
  lacks_some_ = false;
  for (Index i = 0; i < records.targets.rows() * positions; ++i) {
    const std::span<const Scalar> own = part(targets, {i * columns, (i + 1) * columns});
    const Index missing = copies ? std::ranges::count_if(own, kIsMissing) : 0;
    if (missing == columns) continue;
    numbers_.push_back(i);
    present_.push_back(static_cast<Scalar>(columns - missing));
    lacks_some_ |= missing > 0;
    if (records.weights.given() || !class_weights.empty()) {
      weights_.push_back(static_cast<Scalar>(records.weights[i / positions]) *
                         (class_weights.empty() ? Scalar{1} : at(class_weights, class_of(own))));
    }
    if (!copies) continue;
    const Scalar* outputs = records.outputs.data() + i * width;
    kept_outputs_.insert(kept_outputs_.end(), outputs, outputs + width);
    kept_targets_.insert(kept_targets_.end(), own.begin(), own.end());
  }
  const auto rows = std::ssize(numbers_);
  outputs_.emplace(copies ? kept_outputs_.data() : records.outputs.data(), rows, width);
  targets_.emplace(copies ? kept_targets_.data() : records.targets.data(), rows, columns);
}

SampleWeights PositionRows::weights() const {
  SampleWeights weights{.values = weights_, .present = {}, .targets = targets_->cols()};
  if (lacks_some_) weights.present = present_;
  return weights;
}

}  // namespace lockstep
