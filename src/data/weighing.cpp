#include "lockstep/data/weighing.h"

#include <algorithm>
#include <cmath>

#include "lockstep/math/sample_weights.h"

namespace lockstep {

void weigh(const Weighing& weighing, const DatasetInfo& info, Matrix& labels, std::span<Scalar> weights,
           std::span<Scalar> present) {
  if (info.weighted) {
    take_weights(labels, weights);
  } else if (!weighing.of_class.empty()) {
    std::ranges::fill(weights, Scalar{1});
  }
  if (weighing.of_class.empty() && !weighing.masks) return;
  for (Index row = 0; row < labels.rows(); ++row) {
    const std::span<const Scalar> targets(labels.data() + row * info.target_columns,
                                          static_cast<std::size_t>(info.target_columns));
    if (!weighing.of_class.empty()) at(weights, row) *= at(weighing.of_class, class_of(targets));
    if (!weighing.masks) continue;
    const auto missing = std::ranges::count_if(targets, [](Scalar target) { return std::isnan(target); });
    at(present, row) = static_cast<Scalar>(info.target_columns - missing);
  }
}

}  // namespace lockstep
