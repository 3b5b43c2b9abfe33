#include <cmath>

#include "lockstep/train/evaluation/metric.h"
#include "questions.h"

namespace lockstep {
namespace {

// The correlation of two answers of several classes (Gorodkin 2004), from what they have in common.
double correlation(double common, double truth, double guesses) {
  const double spread = std::sqrt(truth) * std::sqrt(guesses);
  return spread > 0 ? common / spread : 0;
}

class Mcc final : public Metric {
 public:
  Mcc(const OutputForm& form, Index outputs)
      : questions_(form.targets, outputs), one_answer_(form.targets == TargetKind::kClass && outputs > 2) {}

  MetricNeeds needs() const override { return {.sums = questions_.size() * Index{kColumns}}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      const double weight = rows.weights[row];
      questions_.visit_answers(rows, row, [&](Index question, bool truth, bool guess) {
        double* sums = parts.sums.data() + question * Index{kColumns};
        sums[kAll] += weight;
        sums[kTrue] += truth ? weight : 0;
        sums[kSaid] += guess ? weight : 0;
        sums[kBoth] += truth && guess ? weight : 0;
      });
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    if (one_answer_) return of_classes(totals.sums);
    return mean_over(questions_.size(), [&](Index question) -> std::optional<double> {
      const double* sums = totals.sums.data() + question * Index{kColumns};
      if (sums[kAll] == 0) return std::nullopt;
      return correlation(sums[kBoth] * sums[kAll] - sums[kTrue] * sums[kSaid],
                         sums[kTrue] * (sums[kAll] - sums[kTrue]), sums[kSaid] * (sums[kAll] - sums[kSaid]));
    });
  }

 private:
  // Sums of weights for each question: of all samples, of those that it is true of, that the model says so
  // of, and both.
  enum Column : std::size_t { kAll, kTrue, kSaid, kBoth, kColumns };

  double of_classes(std::span<const double> totals) const {
    const double all = totals[kAll];
    double right = 0;
    double common = 0;
    double truth = all * all;
    double guesses = all * all;
    for (Index question = 0; question < questions_.size(); ++question) {
      const double* sums = totals.data() + question * Index{kColumns};
      right += sums[kBoth];
      common += sums[kTrue] * sums[kSaid];
      truth -= sums[kTrue] * sums[kTrue];
      guesses -= sums[kSaid] * sums[kSaid];
    }
    return correlation(right * all - common, truth, guesses);
  }

  Questions questions_;
  bool one_answer_;  // of several classes, one is right
};

}  // namespace

MetricEntry mcc_entry() {
  return {.name = "mcc",
          .help =
              "Correlation of the true and the predicted classes (Matthews 1975; several classes: Gorodkin "
              "2004): 1 is perfect, 0 no better than chance or always one class, -1 all wrong. Several "
              "outputs: the mean over them",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = false,
          .make = [](const OutputForm& form, Index outputs) { return std::make_unique<Mcc>(form, outputs); },
          .by_name = true};
}

}  // namespace lockstep
