// Deviances: twice the log likelihood that the targets themselves would have as predictions, less that of the
// predictions. With x = log of the prediction, as the model puts it out, nothing overflows before the
// prediction does.
#include <cmath>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

double poisson_deviance(double target, double x) {
  const double own = target > 0 ? target * (std::log(target) - x) : 0;
  return 2 * (own - target + std::exp(x));
}

double gamma_deviance(double target, double x) {
  return 2 * (x - std::log(target) + target * std::exp(-x) - 1);
}

// For powers p of the mean with 1 < p < 2.
double tweedie_deviance(double target, double x, double p) {
  return 2 * (std::pow(target, 2 - p) / ((1 - p) * (2 - p)) - target * std::exp((1 - p) * x) / (1 - p) +
              std::exp((2 - p) * x) / (2 - p));
}

double deviance(double power, double target, double x) {
  if (power == 1) return poisson_deviance(target, x);
  return power == 2 ? gamma_deviance(target, x) : tweedie_deviance(target, x, power);
}

// The mean over samples and outputs.
class MeanDeviance final : public Metric {
 public:
  explicit MeanDeviance(double power) : power_(power) {}

  MetricNeeds needs() const override { return {.sums = 1}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    double sum = 0;
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      for (Index i = 0; i < rows.outputs.cols(); ++i) {
        if (std::isnan(rows.targets(row, i))) continue;  // a target that is missing
        sum += rows.weights[row] * deviance(power_, static_cast<double>(rows.targets(row, i)),
                                            static_cast<double>(rows.outputs(row, i)));
      }
    }
    parts.sums[0] += sum / static_cast<double>(rows.outputs.cols());
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return totals.sums[0] / totals.weight;
  }

 private:
  double power_;
};

}  // namespace

MetricEntry poisson_deviance_entry() {
  return {.name = "poisson_deviance",
          .help =
              "2 (target log(target / prediction) - target + prediction); train.loss 'poisson', 'tweedie', "
              "'gamma'",
          .targets = {TargetKind::kValue},
          .smaller_is_better = true,
          .make = [](const OutputForm&, Index) { return std::make_unique<MeanDeviance>(1); },
          .suits = [](const OutputForm& form) { return form.power >= 1; }};
}

MetricEntry tweedie_deviance_entry() {
  return {.name = "tweedie_deviance",
          .help = "The deviance of Tweedie's distribution of power train.tweedie_power; train.loss 'tweedie'",
          .targets = {TargetKind::kValue},
          .smaller_is_better = true,
          .make = [](const OutputForm& form, Index) { return std::make_unique<MeanDeviance>(form.power); },
          .suits = [](const OutputForm& form) { return form.power > 1 && form.power < 2; }};
}

MetricEntry gamma_deviance_entry() {
  return {.name = "gamma_deviance",
          .help = "2 (log(prediction / target) + target / prediction - 1); train.loss 'gamma'",
          .targets = {TargetKind::kValue},
          .smaller_is_better = true,
          .make = [](const OutputForm&, Index) { return std::make_unique<MeanDeviance>(2); },
          .suits = [](const OutputForm& form) { return form.power >= 2; }};
}

}  // namespace lockstep
