#include "lockstep/train/evaluation/metric.h"
#include "questions.h"

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

}  // namespace

MetricEntry auc_entry() {
  return {.name = "auc",
          .help =
              "Area under the ROC curve: the share of all pairs of a positive and a negative sample in which "
              "the positive has the higher output, half of those with equal ones counted (Mann & Whitney "
              "1947); exact, for 4 bytes a sample (with weights 12, and all on one rank). Several classes or "
              "outputs: the mean over each against the rest",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = false,
          .make = [](const OutputForm& form, Index outputs) {
            return std::make_unique<Auc>(Questions(form.targets, outputs));
          }};
}

}  // namespace lockstep
