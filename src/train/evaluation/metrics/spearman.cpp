// The rank of a sample among others is the weight of all below it and half the weight of those that are equal
// to it, itself among them: where samples weigh 1, that is the usual mean rank less one half.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lockstep/train/evaluation/metric.h"
#include "questions.h"

namespace lockstep {
namespace {

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

class Spearman final : public Metric {
 public:
  explicit Spearman(Index outputs) : outputs_(outputs) {}

  MetricNeeds needs() const override { return {.samples = outputs_}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      for (Index i = 0; i < outputs_; ++i) {
        if (std::isnan(rows.targets(row, i))) continue;
        const Scalar output = rows.outputs(row, i);
        at(parts.samples, i)
            .push_back({.score = std::isnan(output) ? -std::numeric_limits<Scalar>::infinity() : output,
                        .target = rows.targets(row, i),
                        .weight = static_cast<Scalar>(rows.weights[row])});
      }
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return mean_over(outputs_, [&](Index i) { return rank_correlation(at(totals.samples, i)); });
  }

 private:
  Index outputs_;
};

}  // namespace

MetricEntry spearman_entry() {
  return {.name = "spearman",
          .help =
              "Rank correlation of the predictions and the targets (Spearman 1904), equal values with their "
              "mean rank: 1 if the order is the same, 0 by chance, -1 if it is reversed; exact, for 12 bytes "
              "a sample, all on one rank. Several outputs: the mean over them",
          .targets = {TargetKind::kValue},
          .smaller_is_better = false,
          .make = [](const OutputForm&, Index outputs) { return std::make_unique<Spearman>(outputs); },
          .suits = [](const OutputForm& form) { return form.outputs_per_target() == 1 && !form.direction; },
          .by_name = true};
}

}  // namespace lockstep
