// Metrics of how samples are ordered by their scores.
#include "rows.h"

namespace lockstep {
namespace {

class Auc final : public Metric {
 public:
  explicit Auc(const Questions& questions) : questions_(questions) {}

  MetricNeeds needs() const override { return {.rankings = questions_.size()}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      questions_.visit_scores(rows, row, [&](Index question, bool truth, Scalar score) {
        Scores& scores = at(parts.scores, question);
        (truth ? scores.positives : scores.negatives).push_back(score);
        if (!rows.weights.given()) return;
        const Scalar weight = at(rows.weights.values, row);
        (truth ? scores.positive_weights : scores.negative_weights).push_back(weight);
      });
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return mean_over(questions_.size(), [&](Index question) -> std::optional<double> {
      const RankedPairs& ranked = at(totals.rankings, question);
      if (ranked.positives == 0 || ranked.negatives == 0) return std::nullopt;
      return ranked.twice_above / (2 * (ranked.positives * ranked.negatives));
    });
  }

 private:
  Questions questions_;
};

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

class AveragePrecision final : public Metric {
 public:
  explicit AveragePrecision(const Questions& questions) : questions_(questions) {}

  MetricNeeds needs() const override { return {.samples = questions_.size()}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      questions_.visit_scores(rows, row, [&](Index question, bool truth, Scalar score) {
        at(parts.samples, question)
            .push_back({.score = score,
                        .target = truth ? Scalar{1} : Scalar{0},
                        .weight = static_cast<Scalar>(rows.weights[row])});
      });
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return mean_over(questions_.size(),
                     [&](Index question) { return average_precision(at(totals.samples, question)); });
  }

 private:
  Questions questions_;
};

template <class Measured>
std::unique_ptr<Metric> make_of_questions(const OutputForm& form, Index outputs) {
  return std::make_unique<Measured>(Questions(form, outputs));
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
       .make = make_of_questions<Auc>},
      {.name = "average_precision",
       .help = "Area under the precision-recall curve: the mean over the positive samples of the precision "
               "among all whose output is as high or higher (scikit-learn's); exact, for 12 bytes a sample, "
               "all on one rank. Several classes or outputs: the mean over each against the rest",
       .targets = {TargetKind::kClass, TargetKind::kBinary},
       .smaller_is_better = false,
       .make = make_of_questions<AveragePrecision>,
       .by_name = true,
       .of_positive = true}};
}

}  // namespace lockstep
