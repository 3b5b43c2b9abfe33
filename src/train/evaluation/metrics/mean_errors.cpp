#include <cmath>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

// The mean over samples and outputs of a function of the error.
template <class Penalty>
class MeanError final : public Metric {
 public:
  MetricNeeds needs() const override { return {.sums = 1}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    double sum = 0;
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      for (Index i = 0; i < rows.outputs.cols(); ++i) {
        const auto output = static_cast<double>(rows.outputs(row, i));
        sum += rows.weights[row] * Penalty{}(output - static_cast<double>(rows.targets(row, i)));
      }
    }
    parts.sums[0] += sum / static_cast<double>(rows.outputs.cols());
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return totals.sums[0] / totals.weight;
  }
};

struct Magnitude {
  double operator()(double error) const { return std::abs(error); }
};

struct Square {
  double operator()(double error) const { return error * error; }
};

}  // namespace

MetricEntry mean_absolute_error_entry() {
  return {.name = "mean_absolute_error",
          .help = "|output - target|, in units of the target",
          .targets = {TargetKind::kValue},
          .smaller_is_better = true,
          .make = [](TargetKind, Index) { return std::make_unique<MeanError<Magnitude>>(); }};
}

MetricEntry mean_squared_error_metric_entry() {
  return {.name = "mean_squared_error",
          .help = "(output - target)^2, whatever the loss",
          .targets = {TargetKind::kValue},
          .smaller_is_better = true,
          .make = [](TargetKind, Index) { return std::make_unique<MeanError<Square>>(); }};
}

}  // namespace lockstep
