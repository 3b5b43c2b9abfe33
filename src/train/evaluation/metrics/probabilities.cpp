#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "lockstep/train/evaluation/metrics.h"
#include "rows.h"

namespace lockstep {
namespace {

// Metrics of the probabilities that are predicted.

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
  double sum = 0;
  visit_outputs(rows, row, [&](Index, Scalar output, double target) {
    const auto x = static_cast<double>(output);
    sum += softplus(x) - x * target;
  });
  return sum / static_cast<double>(rows.outputs.cols());
}

// The log loss in bits, over the characters that the true tokens have.
Metric bits_of_characters() {
  return {.needs = {.sums = 2},
          .collect =
              [](const MetricRows& rows, const MetricParts& parts) {
                for (Index row = 0; row < rows.outputs.rows(); ++row) {
                  const double weight = rows.weights[row];
                  parts.sums[0] += weight * log_loss_of_class(rows, row) / std::numbers::ln2;
                  parts.sums[1] +=
                      weight *
                      (rows.characters.empty() ? 1 : at(rows.characters, true_class(rows.targets, row)));
                }
              },
          .value =
              [](const MetricTotals& totals) {
                return totals.sums[1] > 0 ? std::optional(totals.sums[0] / totals.sums[1]) : std::nullopt;
              }};
}

Metric perplexity_of_classes() {
  Metric metric = mean_over_samples(log_loss_of_class);
  metric.value = [](const MetricTotals& totals) {
    return std::optional(std::exp(totals.sums[0] / totals.weight));
  };
  return metric;
}

double square(double x) {
  return x * x;
}

// The mean over the outputs of the mean over the samples whose target is there.
Metric brier_of_outputs(Index outputs) {
  return {.needs = {.sums = 2 * outputs},
          .collect =
              [](const MetricRows& rows, const MetricParts& parts) {
                for (Index row = 0; row < rows.outputs.rows(); ++row) {
                  visit_outputs(rows, row, [&](Index i, Scalar output, double target) {
                    at(parts.sums, 2 * i) += rows.weights[row];
                    at(parts.sums, 2 * i + 1) +=
                        rows.weights[row] * square(logistic(static_cast<double>(output)) - target);
                  });
                }
              },
          .value =
              [outputs](const MetricTotals& totals) {
                return mean_over(outputs, [&](Index i) -> std::optional<double> {
                  const double weight = at(totals.sums, 2 * i);
                  return weight > 0 ? std::optional(at(totals.sums, 2 * i + 1) / weight) : std::nullopt;
                });
              }};
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

// With several outputs of yes or no it is the mean over them.
Metric make_ece(const OutputForm& form, Index outputs) {
  const Index sets = form.targets == TargetKind::kBinary ? outputs : 1;
  return {.needs = {.sums = sets * kReliabilitySums},
          .collect = [targets = form.targets](
                         const MetricRows& rows,
                         const MetricParts& parts) { collect_reliability(targets, rows, parts.sums); },
          .value =
              [sets](const MetricTotals& totals) {
                return mean_over(sets, [&](Index i) -> std::optional<double> {
                  const auto sums = part(totals.sums, {i * kReliabilitySums, (i + 1) * kReliabilitySums});
                  if (std::ranges::all_of(sums, [](double sum) { return sum == 0; })) return std::nullopt;
                  return calibration_error(sums);
                });
              }};
}

}  // namespace

double log_sum_exp(const ConstMatrix& outputs, Index row) {
  const Scalar* first = outputs.data() + row * outputs.cols();
  const auto largest = static_cast<double>(*std::max_element(first, first + outputs.cols()));
  double sum = 0;
  for (Index i = 0; i < outputs.cols(); ++i) sum += std::exp(static_cast<double>(first[i]) - largest);
  return largest + std::log(sum);
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

double logistic(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

double second_of_two(const ConstMatrix& outputs, Index row) {
  return logistic(static_cast<double>(outputs(row, 1)) - static_cast<double>(outputs(row, 0)));
}

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
           [](const OutputForm& form, Index outputs) {
             const bool of_class = form.targets == TargetKind::kClass;
             return of_class ? mean_over_samples(brier_of_classes) : brier_of_outputs(outputs);
           },
       .suits = has_probabilities,
       .by_name = true},
      {.name = "ece",
       .help = "Expected calibration error: |mean probability - share that is so| of 15 bins of equal width, "
               "the mean over the samples (Guo et al. 2017). Of yes or no and of two classes the probability "
               "of yes, of more that of the predicted class; several outputs: the mean over them. Not of the "
               "margins of hinge losses",
       .targets = classes,
       .smaller_is_better = true,
       .make = make_ece,
       .suits = has_probabilities,
       .by_name = true},
      {.name = "bits_per_character",
       .help =
           "-log2 of the probability given to the tokens of a text, over their characters (data.tokens "
           "bytes: those that its UTF-8 has), so that models with other tokens compare; of other classes of "
           "positions over the positions",
       .targets = {TargetKind::kClass},
       .smaller_is_better = true,
       .make = [](const OutputForm&, Index) { return bits_of_characters(); },
       .suits = has_probabilities,
       .by_name = true},
      {.name = "perplexity",
       .help = "e to the power of the mean log_loss: among so many classes, or tokens, the model is as "
               "undecided as among equals",
       .targets = {TargetKind::kClass},
       .smaller_is_better = true,
       .make = [](const OutputForm&, Index) { return perplexity_of_classes(); },
       .suits = has_probabilities,
       .by_name = true}};
}

}  // namespace lockstep
