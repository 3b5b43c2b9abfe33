#include <cmath>

#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/metrics.h"
#include "questions.h"

namespace lockstep {
namespace {

double square(double x) {
  return x * x;
}

class Brier final : public Metric {
 public:
  explicit Brier(TargetKind targets) : targets_(targets) {}

  MetricNeeds needs() const override { return {.sums = 1}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      parts.sums[0] += rows.weights[row] * (targets_ == TargetKind::kBinary ? of_outputs(rows, row)
                                            : rows.outputs.cols() == 2      ? of_two(rows, row)
                                                                            : of_classes(rows, row));
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return totals.sums[0] / totals.weight;
  }

 private:
  static double of_outputs(const MetricRows& rows, Index row) {
    double sum = 0;
    for (Index i = 0; i < rows.outputs.cols(); ++i) {
      if (std::isnan(rows.targets(row, i))) continue;
      sum += square(logistic(static_cast<double>(rows.outputs(row, i))) -
                    static_cast<double>(rows.targets(row, i)));
    }
    return sum / static_cast<double>(rows.outputs.cols());
  }

  static double of_two(const MetricRows& rows, Index row) {
    return square(second_of_two(rows.outputs, row) - share_of_class(rows.targets, row, 1));
  }

  static double of_classes(const MetricRows& rows, Index row) {
    const double log_sum = log_sum_exp(rows.outputs, row);
    double sum = 0;
    for (Index i = 0; i < rows.outputs.cols(); ++i) {
      sum += square(std::exp(static_cast<double>(rows.outputs(row, i)) - log_sum) -
                    share_of_class(rows.targets, row, i));
    }
    return sum;
  }

  TargetKind targets_;
};

}  // namespace

MetricEntry brier_entry() {
  return {.name = "brier",
          .help =
              "(probability - target)^2, of two classes for class 1, of more the sum over them (Brier 1950); "
              "several outputs: the mean over them. Not of the margins of hinge losses",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = true,
          .make = [](const OutputForm& form, Index) { return std::make_unique<Brier>(form.targets); },
          .suits = has_probabilities,
          .by_name = true};
}

}  // namespace lockstep
