// Metrics of how samples are ordered by their scores.
#include "rows.h"

namespace lockstep {
namespace {

Metric make_auc(const OutputForm& form, Index outputs) {
  const Questions questions(form, outputs);
  return {.needs = {.rankings = questions.size()},
          .collect =
              [questions](const MetricRows& rows, const MetricParts& parts) {
                for (Index row = 0; row < rows.outputs.rows(); ++row) {
                  questions.visit_scores(rows, row, [&](Index question, bool truth, Scalar score) {
                    Scores& scores = at(parts.scores, question);
                    (truth ? scores.positives : scores.negatives).push_back(score);
                    if (!rows.weights.given()) return;
                    const Scalar weight = at(rows.weights.values, row);
                    (truth ? scores.positive_weights : scores.negative_weights).push_back(weight);
                  });
                }
              },
          .value =
              [](const MetricTotals& totals) {
                return mean_over(std::ssize(totals.rankings), [&](Index question) -> std::optional<double> {
                  const RankedPairs& ranked = at(totals.rankings, question);
                  if (ranked.positives == 0 || ranked.negatives == 0) return std::nullopt;
                  return ranked.twice_above / (2 * (ranked.positives * ranked.negatives));
                });
              }};
}

// From the highest score down, each group of equal scores adds its share of the positives, times the
// precision of all samples so far.
std::optional<double> average_precision(std::span<const ScoredSample> samples) {
  double positives = 0;
  for (const ScoredSample& sample : samples) positives += sample.target > 0 ? double{sample.weight} : 0;
  if (positives == 0) return std::nullopt;
  double sum = 0;
  double hits = 0;
  double all = 0;
  for (std::size_t end = samples.size(); end > 0;) {
    const Scalar score = samples[end - 1].score;
    double of_group = 0;
    for (; end > 0 && samples[end - 1].score == score; --end) {
      const auto weight = static_cast<double>(samples[end - 1].weight);
      of_group += samples[end - 1].target > 0 ? weight : 0;
      all += weight;
    }
    hits += of_group;
    if (of_group > 0) sum += of_group * (hits / all);
  }
  return sum / positives;
}

Metric make_average_precision(const OutputForm& form, Index outputs) {
  const Questions questions(form, outputs);
  return mean_over_sets(
      questions.size(),
      [questions](const MetricRows& rows, Index row, const auto& add) {
        questions.visit_scores(rows, row, [&](Index question, bool truth, Scalar score) {
          add(question, score, truth ? Scalar{1} : Scalar{0});
        });
      },
      average_precision);
}

}  // namespace

std::vector<MetricEntry> score_metrics() {
  return {
      {.name = "auc",
       .help =
           "Area under the ROC curve: the share of all pairs of a positive and a negative sample in which "
           "the positive has the higher output, half of those with equal ones counted (Mann & Whitney "
           "1947); exact, for 4 bytes a sample (with weights 12, and all on one rank). Several classes or "
           "outputs: the mean over each against the rest",
       .targets = {TargetKind::kClass, TargetKind::kBinary},
       .smaller_is_better = false,
       .make = make_auc},
      {.name = "average_precision",
       .help = "Area under the precision-recall curve: the mean over the positive samples of the precision "
               "among all whose output is as high or higher (scikit-learn's); exact, for 12 bytes a sample, "
               "all on one rank. Several classes or outputs: the mean over each against the rest",
       .targets = {TargetKind::kClass, TargetKind::kBinary},
       .smaller_is_better = false,
       .make = make_average_precision,
       .by_name = true,
       .of_positive = true}};
}

}  // namespace lockstep
