// The sizes of the numbers that one update of the weights was made from, over all owners: norms, and
// histograms of each tensor. They have the same bits whoever owns what.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// Bins of a histogram: two for each power of two between 2^-40 and 2^20, of either sign, and one for what is
/// nearer to zero. Larger numbers are in the outer bins.
inline constexpr Index kHistogramBins = 241;

/// The bin of a number, 0 for the most negative.
Index histogram_bin(Scalar value);
/// The upper end of a bin.
double histogram_limit(Index bin);

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
