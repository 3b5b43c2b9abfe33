// Reliability: whether what is predicted with a probability comes true as often. Predictions are put into
// bins by their probability. For outputs of yes or no, each of them, and for two classes, that is the
// probability of yes (of class 1); for more classes it is that of the predicted class (Guo et al. 2017,
// section 2).
#pragma once

#include <span>
#include <vector>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

/// Bins of equal width over [0, 1]; a probability on a border belongs to the bin below it.
inline constexpr Index kReliabilityBins = 15;

/// Numbers that are added up for each block of rows.
inline constexpr Index kReliabilitySums = 4 * kReliabilityBins;

/// One bin with at least one prediction.
struct ReliabilityBin {
  double from = 0;
  double to = 0;
  Index count = 0;       ///< predictions, whatever they weigh
  double predicted = 0;  ///< the mean probability
  double observed = 0;   ///< the share of them that came true
};

/// Adds the predictions of a block of rows to its kReliabilitySums sums. Targets: kClass or kBinary.
void collect_reliability(TargetKind targets, const MetricRows& rows, std::span<double> sums);

/// The expected calibration error: the mean of |predicted - observed| over the predictions.
double calibration_error(std::span<const double> sums);

/// The bins that are not empty, in order.
std::vector<ReliabilityBin> reliability_bins(std::span<const double> sums);

}  // namespace lockstep
