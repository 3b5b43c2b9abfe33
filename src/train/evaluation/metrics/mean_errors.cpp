#include <cmath>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

// The mean over samples and outputs of a function of the error of the prediction.
template <class Penalty>
class MeanError final : public Metric {
 public:
  explicit MeanError(Link link) : link_(link) {}

  MetricNeeds needs() const override { return {.sums = 1}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    double sum = 0;
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      for (Index i = 0; i < rows.outputs.cols(); ++i) {
        if (std::isnan(rows.targets(row, i))) continue;
        const double predicted = predicted_value(link_, rows.outputs(row, i));
        sum += rows.weights[row] * Penalty{}(predicted - static_cast<double>(rows.targets(row, i)));
      }
    }
    parts.sums[0] += sum / static_cast<double>(rows.outputs.cols());
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return totals.sums[0] / totals.weight;
  }

 private:
  Link link_;
};

struct Magnitude {
  double operator()(double error) const { return std::abs(error); }
};

struct Square {
  double operator()(double error) const { return error * error; }
};

// An output for each target, in its units.
bool are_values(const OutputForm& form) {
  return form.outputs_per_target() == 1 && !form.direction;
}

}  // namespace

double predicted_value(Link link, Scalar output) {
  const auto value = static_cast<double>(output);
  return link == Link::kLog ? std::exp(value) : value;
}

MetricEntry mean_absolute_error_metric_entry() {
  return {
      .name = "mean_absolute_error",
      .help = "|prediction - target|, in units of the target",
      .targets = {TargetKind::kValue},
      .smaller_is_better = true,
      .make = [](const OutputForm& form, Index) { return std::make_unique<MeanError<Magnitude>>(form.link); },
      .suits = are_values};
}

MetricEntry mean_squared_error_metric_entry() {
  return {
      .name = "mean_squared_error",
      .help = "(prediction - target)^2, whatever the loss",
      .targets = {TargetKind::kValue},
      .smaller_is_better = true,
      .make = [](const OutputForm& form, Index) { return std::make_unique<MeanError<Square>>(form.link); },
      .suits = are_values};
}

}  // namespace lockstep
