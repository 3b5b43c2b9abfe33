// Predictions of numbers against their targets: a sample of them, and how often each residual occurs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/table/values/label_scale.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

/// Models of more targets have the first ones described.
inline constexpr Index kMaxFits = 4;
inline constexpr Index kResidualBins = 41;

struct TargetFit {
  /// Targets and predictions of at most 1,000 samples, drawn by their ids, in the units of the labels.
  std::vector<std::pair<double, double>> sample = {};
  /// Counts of prediction - target in bins of equal width over [-width, width]; the outer bins have the rest,
  /// too.
  double width = 0;
  std::vector<Index> residuals = {};
};

/// The predictions that one thread has seen. Predictions of quantiles are those of the middle level.
class FitSamples {
 public:
  /// `rows`: of the whole set. Losses of anything but values, or of directions, have no fits.
  FitSamples(const OutputForm& form, Index outputs, Index rows, std::vector<LabelScale> scales);

  void add(const MetricRows& rows, std::span<const Index> ids);
  void add(FitSamples& other);
  /// *Collective.* All ranks get the same.
  std::vector<TargetFit> fits(Communicator& comm);

 private:
  struct Drawn {
    std::uint64_t key = 0;
    double target = 0;
    double prediction = 0;
    auto operator<=>(const Drawn&) const = default;
  };
  struct OneTarget {
    std::vector<Drawn> drawn = {};
    std::vector<Scalar> residuals = {};
  };

  static TargetFit fit(Communicator& comm, const OneTarget& samples);

  OutputForm form_;
  std::uint64_t drawn_below_ = 0;
  std::vector<LabelScale> scales_;
  std::vector<OneTarget> targets_;
};

}  // namespace lockstep
