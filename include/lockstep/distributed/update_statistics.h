// The sizes of the numbers that one update of the weights was made from, over all owners: norms, and
// histograms of each tensor. They have the same bits whoever owns what.
#pragma once

#include <limits>
#include <vector>

#include "lockstep/math/histogram_bins.h"

namespace lockstep {

struct UpdateStatistics {
  bool with_histograms = false;  ///< given: whether histograms are made, too
  /// The mean gradient, before it is scaled down to a norm; the weights before the step. Tensors that are not
  /// trained do not count. NaN: no step was taken.
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();
  double weight_norm = std::numeric_limits<double>::quiet_NaN();
  /// Counts: kHistogramBins for each tensor of the layout, one after the other.
  std::vector<double> gradients = {};
  std::vector<double> weights = {};
};

}  // namespace lockstep
