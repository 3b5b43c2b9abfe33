// Metrics of the probabilities that are predicted.
#include "lockstep/train/evaluation/calibration.h"
#include "rows.h"

namespace lockstep {
namespace {

// The mean over the outputs of a row of of_output(output, target).
template <class OfOutput>
double mean_of_row(const MetricRows& rows, Index row, const OfOutput& of_output) {
  double sum = 0;
  visit_outputs(rows, row, [&](Index, Scalar output, double target) {
    sum += of_output(static_cast<double>(output), target);
  });
  return sum / static_cast<double>(rows.outputs.cols());
}

double log_loss_of_class(const MetricRows& rows, Index row) {
  const ConstMatrix& outputs = rows.outputs;
  const ConstMatrix& targets = rows.targets;
  const double log_sum = log_sum_exp(outputs, row);
  if (targets.cols() == 1) return log_sum - static_cast<double>(outputs(row, true_class(targets, row)));
  double sum = 0;
  for (Index i = 0; i < outputs.cols(); ++i) {
    sum += static_cast<double>(targets(row, i)) * (log_sum - static_cast<double>(outputs(row, i)));
  }
  return sum;
}

double log_loss_of_outputs(const MetricRows& rows, Index row) {
  return mean_of_row(rows, row, [](double x, double target) { return softplus(x) - x * target; });
}

double square(double x) {
  return x * x;
}

double brier_of_outputs(const MetricRows& rows, Index row) {
  return mean_of_row(rows, row, [](double x, double target) { return square(logistic(x) - target); });
}

double brier_of_classes(const MetricRows& rows, Index row) {
  if (rows.outputs.cols() == 2) {
    return square(second_of_two(rows.outputs, row) - share_of_class(rows.targets, row, 1));
  }
  const double log_sum = log_sum_exp(rows.outputs, row);
  double sum = 0;
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    sum += square(std::exp(static_cast<double>(rows.outputs(row, i)) - log_sum) -
                  share_of_class(rows.targets, row, i));
  }
  return sum;
}

class Ece final : public Metric {
 public:
  explicit Ece(TargetKind targets) : targets_(targets) {}

  MetricNeeds needs() const override { return {.sums = kReliabilitySums}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    collect_reliability(targets_, rows, parts.sums);
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return calibration_error(totals.sums);
  }

 private:
  TargetKind targets_;
};

}  // namespace

std::vector<MetricEntry> probability_metrics() {
  const std::vector<TargetKind> classes{TargetKind::kClass, TargetKind::kBinary};
  return {
      {.name = "log_loss",
       .help = "-log of the probability given to what is true, whatever the loss (label smoothing counts in "
               "the loss only). Not of the margins of hinge losses",
       .targets = classes,
       .smaller_is_better = true,
       .make =
           [](const OutputForm& form, Index) {
             const bool of_class = form.targets == TargetKind::kClass;
             return mean_over_samples(of_class ? log_loss_of_class : log_loss_of_outputs);
           },
       .suits = [](const OutputForm& form) { return form.link != Link::kIdentity; }},
      {.name = "brier",
       .help =
           "(probability - target)^2, of two classes for class 1, of more the sum over them (Brier 1950); "
           "several outputs: the mean over them. Not of the margins of hinge losses",
       .targets = classes,
       .smaller_is_better = true,
       .make =
           [](const OutputForm& form, Index) {
             const bool of_class = form.targets == TargetKind::kClass;
             return mean_over_samples(of_class ? brier_of_classes : brier_of_outputs);
           },
       .suits = has_probabilities,
       .by_name = true},
      {.name = "ece",
       .help = "Expected calibration error: |mean probability - share that is so| of 15 bins of equal width, "
               "the mean over the samples (Guo et al. 2017). Of yes or no and of two classes the probability "
               "of yes, of more that of the predicted class. Not of the margins of hinge losses",
       .targets = classes,
       .smaller_is_better = true,
       .make = [](const OutputForm& form, Index) -> std::unique_ptr<Metric> {
         return std::make_unique<Ece>(form.targets);
       },
       .suits = has_probabilities,
       .by_name = true}};
}

}  // namespace lockstep
