#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/train/evaluation/metric.h"
#include "questions.h"

namespace lockstep {
namespace {

// The mean over samples and outputs of a function of the error of the prediction and of the target.
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
        const auto target = static_cast<double>(rows.targets(row, i));
        sum += rows.weights[row] * Penalty{}(predicted - target, target);
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
  double operator()(double error, double) const { return std::abs(error); }
};

struct Square {
  double operator()(double error, double) const { return error * error; }
};

// The divisor is at least the distance of 1 from the next double, as scikit-learn has it.
struct Share {
  double operator()(double error, double target) const {
    return std::abs(error) / std::max(std::abs(target), std::numeric_limits<double>::epsilon());
  }
};

// The root of the mean square of each output, and the mean over the outputs.
class RootMeanSquare final : public Metric {
 public:
  RootMeanSquare(Link link, Index outputs) : link_(link), outputs_(outputs) {}

  MetricNeeds needs() const override { return {.sums = 2 * outputs_}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      for (Index i = 0; i < outputs_; ++i) {
        if (std::isnan(rows.targets(row, i))) continue;
        const double predicted = predicted_value(link_, rows.outputs(row, i));
        const auto target = static_cast<double>(rows.targets(row, i));
        at(parts.sums, 2 * i) += rows.weights[row];
        at(parts.sums, 2 * i + 1) += rows.weights[row] * Square{}(predicted - target, target);
      }
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return mean_over(outputs_, [&](Index i) -> std::optional<double> {
      const double weight = at(totals.sums, 2 * i);
      if (weight == 0) return std::nullopt;
      return std::sqrt(at(totals.sums, 2 * i + 1) / weight);
    });
  }

 private:
  Link link_;
  Index outputs_;
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

MetricEntry root_mean_squared_error_entry() {
  return {.name = "root_mean_squared_error",
          .help =
              "The root of the mean of (prediction - target)^2, in units of the target. Several outputs: the "
              "mean over them",
          .targets = {TargetKind::kValue},
          .smaller_is_better = true,
          .make = [](const OutputForm& form,
                     Index outputs) { return std::make_unique<RootMeanSquare>(form.link, outputs); },
          .suits = are_values,
          .by_name = true};
}

MetricEntry mean_absolute_percentage_error_entry() {
  return {.name = "mean_absolute_percentage_error",
          .help =
              "|prediction - target| / |target|, a share: 0.1 is ten percent. Records with the target 0 "
              "count for much",
          .targets = {TargetKind::kValue},
          .smaller_is_better = true,
          .make = [](const OutputForm& form, Index) { return std::make_unique<MeanError<Share>>(form.link); },
          .suits = are_values,
          .by_name = true};
}

}  // namespace lockstep
