#include "lockstep/train/evaluation/reliability.h"

#include <algorithm>
#include <cmath>

#include "lockstep/train/evaluation/metrics.h"
#include "train/evaluation/metrics/probabilities.h"

namespace lockstep {
namespace {

// Sums of one bin: predictions, their weights and, times these, their probabilities and what came true.
enum ReliabilityColumn : std::size_t { kBinCount, kBinWeight, kBinPredicted, kBinObserved, kBinColumns };
static_assert(kReliabilitySums == kReliabilityBins * Index{kBinColumns});

// A probability that is not a number is in the first bin.
Index bin_of(double probability) {
  if (!(probability > 0)) return 0;
  const double bins{kReliabilityBins};
  return static_cast<Index>(std::min(std::ceil(probability * bins), bins)) - 1;
}

class Bins {
 public:
  explicit Bins(std::span<double> sums) : sums_(sums) {}

  void add(double probability, double observed, double weight) {
    double* sums = sums_.data() + bin_of(probability) * Index{kBinColumns};
    sums[kBinCount] += 1;
    sums[kBinWeight] += weight;
    sums[kBinPredicted] += weight * probability;
    sums[kBinObserved] += weight * observed;
  }

 private:
  std::span<double> sums_;
};

void add_outputs(const MetricRows& rows, Index row, Bins& bins) {
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    const auto target = static_cast<double>(rows.targets(row, i));
    if (std::isnan(target)) continue;
    bins.add(logistic(static_cast<double>(rows.outputs(row, i))), target, rows.weights[row]);
  }
}

void add_class(const MetricRows& rows, Index row, Bins& bins) {
  if (rows.outputs.cols() == 2) {
    bins.add(second_of_two(rows.outputs, row), share_of_class(rows.targets, row, 1), rows.weights[row]);
    return;
  }
  const Index guess = predicted_class(rows.outputs, row);
  const double output{rows.outputs(row, guess)};
  bins.add(std::exp(output - log_sum_exp(rows.outputs, row)), share_of_class(rows.targets, row, guess),
           rows.weights[row]);
}

}  // namespace

void collect_reliability(TargetKind targets, const MetricRows& rows, std::span<double> sums) {
  Bins bins(sums);
  for (Index row = 0; row < rows.outputs.rows(); ++row) {
    if (targets == TargetKind::kBinary) {
      add_outputs(rows, row, bins);
    } else {
      add_class(rows, row, bins);
    }
  }
}

double calibration_error(std::span<const double> sums) {
  double weight = 0;
  double error = 0;
  for (Index bin = 0; bin < kReliabilityBins; ++bin) {
    const double* of_bin = sums.data() + bin * Index{kBinColumns};
    weight += of_bin[kBinWeight];
    error += std::abs(of_bin[kBinPredicted] - of_bin[kBinObserved]);
  }
  return error / weight;
}

std::vector<ReliabilityBin> reliability_bins(std::span<const double> sums) {
  std::vector<ReliabilityBin> bins;
  for (Index bin = 0; bin < kReliabilityBins; ++bin) {
    const double* of_bin = sums.data() + bin * Index{kBinColumns};
    if (of_bin[kBinWeight] == 0) continue;
    const double count{kReliabilityBins};
    bins.push_back({.from = static_cast<double>(bin) / count,
                    .to = static_cast<double>(bin + 1) / count,
                    .count = static_cast<Index>(of_bin[kBinCount]),
                    .predicted = of_bin[kBinPredicted] / of_bin[kBinWeight],
                    .observed = of_bin[kBinObserved] / of_bin[kBinWeight]});
  }
  return bins;
}

}  // namespace lockstep
