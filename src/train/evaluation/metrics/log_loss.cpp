#include <cmath>

#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/metrics.h"
#include "questions.h"

namespace lockstep {
namespace {

class LogLoss final : public Metric {
 public:
  explicit LogLoss(TargetKind targets) : targets_(targets) {}

  MetricNeeds needs() const override { return {.sums = 1}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      parts.sums[0] +=
          rows.weights[row] * (targets_ == TargetKind::kClass ? of_class(rows.outputs, rows.targets, row)
                                                              : of_outputs(rows.outputs, rows.targets, row));
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return totals.sums[0] / totals.weight;
  }

 private:
  static double of_class(const ConstMatrix& outputs, const ConstMatrix& targets, Index row) {
    const double log_sum = log_sum_exp(outputs, row);
    if (targets.cols() == 1) return log_sum - static_cast<double>(outputs(row, true_class(targets, row)));
    double sum = 0;
    for (Index i = 0; i < outputs.cols(); ++i) {
      sum += static_cast<double>(targets(row, i)) * (log_sum - static_cast<double>(outputs(row, i)));
    }
    return sum;
  }

  static double of_outputs(const ConstMatrix& outputs, const ConstMatrix& targets, Index row) {
    double sum = 0;
    for (Index i = 0; i < outputs.cols(); ++i) {
      if (std::isnan(targets(row, i))) continue;
      const auto x = static_cast<double>(outputs(row, i));
      sum += softplus(x) - x * static_cast<double>(targets(row, i));
    }
    return sum / static_cast<double>(outputs.cols());
  }

  TargetKind targets_;
};

}  // namespace

MetricEntry log_loss_entry() {
  return {.name = "log_loss",
          .help =
              "-log of the probability given to what is true, whatever the loss (label smoothing counts in "
              "the loss only). Not of the margins of hinge losses",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = true,
          .make = [](const OutputForm& form, Index) { return std::make_unique<LogLoss>(form.targets); },
          .suits = [](const OutputForm& form) { return form.link != Link::kIdentity; }};
}

}  // namespace lockstep
