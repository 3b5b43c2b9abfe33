// Metrics of predicted numbers.
//
// Deviances: twice the log likelihood that the targets themselves would have as predictions, less that of the
// predictions. With x = log of the prediction, as the model puts it out, nothing overflows before the
// prediction does.
//
// Ranks: the rank of a sample among others is the weight of all below it and half the weight of those that
// are equal to it, itself among them: where samples weigh 1, that is the usual mean rank less one half.
//
// A label that is scaled is measured in its own units: the scale of predictions and targets is undone before.
// Ranks, which a scale does not change, are those of the scaled numbers.
#include <algorithm>
#include <numeric>
#include <utility>

#include "rows.h"

namespace lockstep {
namespace {

// Calls visit(i, prediction, target) for each output of one row whose target is there, in the units of the
// labels.
template <class Visit>
void visit_values(Link link, const MetricRows& rows, Index row, const Visit& visit) {
  const Index per_target = rows.outputs.cols() / rows.targets.cols();
  visit_outputs(rows, row, [&](Index i, Scalar output, double target) {
    const double x = link == Link::kLog ? std::exp(static_cast<double>(output)) : static_cast<double>(output);
    if (rows.scales.empty()) return visit(i, x, target);
    const LabelScale& scale = at(rows.scales, i / per_target);
    visit(i, scale.undo(x), scale.undo(target));
  });
}

// The mean over samples and outputs of penalty(i, prediction, target).
template <class Penalty>
Metric mean_over_values(Link link, Penalty penalty) {
  return mean_of_sums([link, penalty = std::move(penalty)](const MetricRows& rows) {
    double sum = 0;
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      visit_values(link, rows, row, [&](Index i, double value, double target) {
        sum += rows.weights[row] * penalty(i, value, target);
      });
    }
    return sum / static_cast<double>(rows.outputs.cols());
  });
}

// The mean over samples and outputs of penalty(error of the prediction).
template <class Penalty>
Metric mean_penalty(const OutputForm& form, Penalty penalty) {
  return mean_over_values(form.link,
                          [penalty](Index, double value, double target) { return penalty(value - target); });
}

// Whether a target is 0 in the units of its label; a scaled one is so up to the digits that a Scalar keeps.
bool is_zero(const LabelScale& scale, double scaled) {
  constexpr double kTwoSteps = 2 * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  const double target = scale.undo(scaled);
  return std::abs(target) <= std::abs(scale.undo(scaled * (1 + kTwoSteps)) - target);
}

// The mean of |error| / |target| over the targets that are not 0. Sums: of the shares, of the weights, and
// the number of the others.
Metric mean_share_of_target(const OutputForm& form, Index) {
  return {.needs = {.sums = 3},
          .collect =
              [link = form.link](const MetricRows& rows, const MetricParts& parts) {
                for (Index row = 0; row < rows.outputs.rows(); ++row) {
                  visit_values(link, rows, row, [&](Index i, double value, double target) {
                    const LabelScale scale = rows.scales.empty() ? LabelScale() : at(rows.scales, i);
                    if (is_zero(scale, static_cast<double>(rows.targets(row, i))))
                      return void(++parts.sums[2]);
                    parts.sums[0] += rows.weights[row] * std::abs((value - target) / target);
                    parts.sums[1] += rows.weights[row];
                  });
                }
              },
          .value = [](const MetricTotals& totals) -> std::optional<double> {
            if (totals.sums[1] == 0) return std::nullopt;
            return totals.sums[0] / totals.sums[1];
          },
          .left_out = [](const MetricTotals& totals) { return static_cast<Index>(totals.sums[2]); }};
}

// The mean over samples, targets and levels.
Metric mean_quantile_loss(const OutputForm& form) {
  return mean_over_values(form.link, [levels = form.quantiles](Index i, double value, double target) {
    const double level = at(levels, i % std::ssize(levels));
    const double d = target - value;
    return d > 0 ? level * d : (level - 1) * d;
  });
}

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

Metric mean_deviance(double power) {
  return mean_over_values(Link::kIdentity, [power](Index, double x, double target) {
    if (power == 1) return poisson_deviance(target, x);
    return power == 2 ? gamma_deviance(target, x) : tweedie_deviance(target, x, power);
  });
}

// 0 where a row of outputs or targets has no direction: all of it is 0.
double cosine(const MetricRows& rows, Index row) {
  double both = 0;
  double outputs = 0;
  double targets = 0;
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    const auto output = static_cast<double>(rows.outputs(row, i));
    const auto target = static_cast<double>(rows.targets(row, i));
    both += output * target;
    outputs += output * output;
    targets += target * target;
  }
  const double lengths = std::sqrt(outputs) * std::sqrt(targets);
  return lengths == 0 ? 0 : both / lengths;
}

// Columns of one output: the sums of the weights of its targets, of the targets, of their squares, and of the
// squared errors. Targets of a scaled label count from the label that its scale makes 0: their squares leave
// the digits of their spread.
enum SquareColumn : std::size_t { kWeight, kTarget, kSquare, kError, kSquareColumns };

template <std::optional<double> (*kOfSums)(Index outputs, const double* sums)>
Metric make_of_squares(const OutputForm& form, Index outputs) {
  return {.needs = {.sums = outputs * Index{kSquareColumns}},
          .collect =
              [link = form.link](const MetricRows& rows, const MetricParts& parts) {
                for (Index row = 0; row < rows.outputs.rows(); ++row) {
                  const double weight = rows.weights[row];
                  visit_values(link, rows, row, [&](Index i, double value, double target) {
                    double* sums = parts.sums.data() + i * Index{kSquareColumns};
                    const double error = value - target;
                    const double distance =
                        rows.scales.empty() ? target : target - at(rows.scales, i).undo(0);
                    sums[kWeight] += weight;
                    sums[kTarget] += weight * distance;
                    sums[kSquare] += weight * (distance * distance);
                    sums[kError] += weight * (error * error);
                  });
                }
              },
          .value = [outputs](const MetricTotals& totals) { return kOfSums(outputs, totals.sums.data()); }};
}

// An output without any target does not count.
std::optional<double> root_mean_square(Index outputs, const double* sums) {
  return mean_over(outputs, [sums](Index i) -> std::optional<double> {
    const double* of_output = sums + i * Index{kSquareColumns};
    if (of_output[kWeight] == 0) return std::nullopt;
    return std::sqrt(of_output[kError] / of_output[kWeight]);
  });
}

// Not defined where one of the outputs has no target, or the same target always.
std::optional<double> r2(Index outputs, const double* sums) {
  // Targets are floats, so their squares are exact in double; below this share of their mean square, what the
  // subtraction leaves of their variance is rounding.
  constexpr double kLeastVariance = 1e-12;
  double sum = 0;
  for (Index i = 0; i < outputs; ++i, sums += kSquareColumns) {
    if (sums[kWeight] == 0) return std::nullopt;
    const double spread = sums[kSquare] - sums[kTarget] * sums[kTarget] / sums[kWeight];
    if (spread <= kLeastVariance * sums[kSquare]) return std::nullopt;
    sum += 1 - sums[kError] / spread;
  }
  return sum / static_cast<double>(outputs);
}

using SampleColumn = Scalar ScoredSample::*;

// Ranks by a column less half the weight of all, which is their mean. Empty where all values are equal.
std::vector<double> centred_ranks(std::span<const ScoredSample> samples, SampleColumn column) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return samples[i].*column; });
  if (samples.empty() || samples[order.front()].*column == samples[order.back()].*column) return {};
  std::vector<double> ranks(samples.size());
  double below = 0;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    double equal = 0;
    const Scalar value = samples[order[begin]].*column;
    for (; end < order.size() && samples[order[end]].*column == value; ++end) {
      equal += static_cast<double>(samples[order[end]].weight);
    }
    for (; begin < end; ++begin) ranks[order[begin]] = below + equal / 2;
    below += equal;
  }
  for (double& rank : ranks) rank -= below / 2;
  return ranks;
}

std::optional<double> rank_correlation(std::span<const ScoredSample> all) {
  std::vector<ScoredSample> samples;
  std::ranges::copy_if(all, std::back_inserter(samples), [](const ScoredSample& s) { return s.weight > 0; });
  const std::vector<double> predicted = centred_ranks(samples, &ScoredSample::score);
  const std::vector<double> true_ones = centred_ranks(samples, &ScoredSample::target);
  if (predicted.empty() || true_ones.empty()) return std::nullopt;
  double common = 0;
  double of_predicted = 0;
  double of_true = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto weight = static_cast<double>(samples[i].weight);
    common += weight * predicted[i] * true_ones[i];
    of_predicted += weight * predicted[i] * predicted[i];
    of_true += weight * true_ones[i] * true_ones[i];
  }
  return common / (std::sqrt(of_predicted) * std::sqrt(of_true));
}

Metric make_spearman(const OutputForm&, Index outputs) {
  return mean_over_sets(
      outputs,
      [](const MetricRows& rows, Index row, const auto& add) {
        visit_outputs(rows, row, [&](Index i, Scalar output, double target) {
          add(i, sortable(output), static_cast<Scalar>(target));
        });
      },
      rank_correlation);
}

// An output for each target, in its units.
bool are_values(const OutputForm& form) {
  return form.outputs_per_target() == 1 && !form.direction;
}

}  // namespace

std::vector<MetricEntry> error_metrics() {
  return {
      {.name = "mean_absolute_error",
       .help = "|prediction - target|, in units of the target: of a scaled label, its own. Several outputs: "
               "the mean over them",
       .smaller_is_better = true,
       .make = [](const OutputForm& form,
                  Index) { return mean_penalty(form, [](double error) { return std::abs(error); }); },
       .suits = are_values},
      {.name = "mean_squared_error",
       .help = "(prediction - target)^2, whatever the loss; of a scaled label in the square of its own units",
       .smaller_is_better = true,
       .make = [](const OutputForm& form,
                  Index) { return mean_penalty(form, [](double error) { return error * error; }); },
       .suits = are_values},
      {.name = "root_mean_squared_error",
       .help =
           "The root of the mean of (prediction - target)^2, in units of the target: of a scaled label, its "
           "own. Several outputs: the mean over them",
       .smaller_is_better = true,
       .make = make_of_squares<root_mean_square>,
       .suits = are_values,
       .by_name = true},
      {.name = "mean_absolute_percentage_error",
       .help = "|prediction - target| / |target|, a share: 0.1 is ten percent. Targets that are 0 are "
               "left out, and counted",
       .smaller_is_better = true,
       .make = mean_share_of_target,
       .suits = are_values,
       .by_name = true}};
}

std::vector<MetricEntry> agreement_metrics() {
  return {
      {.name = "r2",
       .help =
           "1 - squared error / squared distance of the targets from their mean, of a scaled label in its "
           "own units: 1 is perfect, 0 no better than that mean. Several outputs: the mean over them",
       .smaller_is_better = false,
       .make = make_of_squares<r2>,
       .suits = are_values},
      {.name = "spearman",
       .help =
           "Rank correlation of the predictions and the targets (Spearman 1904), equal values with their "
           "mean rank: 1 if the order is the same, 0 by chance, -1 if it is reversed; exact, for 12 bytes "
           "a sample, all on one rank. Several outputs: the mean over them",
       .smaller_is_better = false,
       .make = make_spearman,
       .suits = are_values,
       .by_name = true}};
}

std::vector<MetricEntry> likelihood_metrics() {
  return {
      {.name = "pinball",
       .help = "The quantile loss in units of the target, the mean over the levels of train.quantiles; "
               "train.loss 'quantile'",
       .smaller_is_better = true,
       .make = [](const OutputForm& form, Index) { return mean_quantile_loss(form); },
       .suits = [](const OutputForm& form) { return !form.quantiles.empty(); }},
      {.name = "poisson_deviance",
       .help = "2 (target log(target / prediction) - target + prediction); train.loss 'poisson', 'tweedie', "
               "'gamma'",
       .smaller_is_better = true,
       .make = [](const OutputForm&, Index) { return mean_deviance(1); },
       .suits = [](const OutputForm& form) { return form.power >= 1; }},
      {.name = "tweedie_deviance",
       .help = "The deviance of Tweedie's distribution of power train.tweedie_power; train.loss 'tweedie'",
       .smaller_is_better = true,
       .make = [](const OutputForm& form, Index) { return mean_deviance(form.power); },
       .suits = [](const OutputForm& form) { return form.power > 1 && form.power < 2; }},
      {.name = "gamma_deviance",
       .help = "2 (log(prediction / target) + target / prediction - 1); train.loss 'gamma'",
       .smaller_is_better = true,
       .make = [](const OutputForm&, Index) { return mean_deviance(2); },
       .suits = [](const OutputForm& form) { return form.power >= 2; }},
      {.name = "cosine_similarity",
       .help = "Cosine of the angle between the outputs and the targets of a record, scaled as they are "
               "learned; train.loss 'cosine_distance'",
       .smaller_is_better = false,
       .make = [](const OutputForm&, Index) { return mean_over_samples(cosine); },
       .suits = [](const OutputForm& form) { return form.direction; }}};
}

}  // namespace lockstep
