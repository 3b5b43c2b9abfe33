#include "lockstep/train/evaluation/metric.h"
#include "questions.h"

namespace lockstep {
namespace {

// Weighted counts of one class: actual positives, predicted positives, true positives.
enum Column : std::size_t { kTrue, kSaid, kBoth, kColumns };

// The number that the true positives are divided by; the quotient is 0 where it is 0.
using Divisor = double (*)(const double* sums);

double said(const double* sums) {
  return sums[kSaid];
}

double is_true(const double* sums) {
  return sums[kTrue];
}

// F1, the harmonic mean of precision and recall, is the true positives by the mean of the two others.
double mean_of_both(const double* sums) {
  return (sums[kTrue] + sums[kSaid]) / 2;
}

// A question that is neither true of any sample nor said of any does not count (scikit-learn's rule for
// classes, with zero_division=0).
class ShareOfHits final : public Metric {
 public:
  ShareOfHits(const Questions& questions, Divisor divisor) : questions_(questions), divisor_(divisor) {}

  MetricNeeds needs() const override { return {.sums = questions_.size() * Index{kColumns}}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      const double weight = rows.weights[row];
      questions_.visit_answers(rows, row, [&](Index question, bool truth, bool guess) {
        double* sums = parts.sums.data() + question * Index{kColumns};
        sums[kTrue] += truth ? weight : 0;
        sums[kSaid] += guess ? weight : 0;
        sums[kBoth] += truth && guess ? weight : 0;
      });
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return mean_over(questions_.size(), [&](Index question) -> std::optional<double> {
      const double* sums = totals.sums.data() + question * Index{kColumns};
      if (sums[kTrue] == 0 && sums[kSaid] == 0) return std::nullopt;
      const double divisor = divisor_(sums);
      return divisor == 0 ? 0 : sums[kBoth] / divisor;
    });
  }

 private:
  Questions questions_;
  Divisor divisor_;
};

}  // namespace

MetricEntry precision_entry() {
  return {.name = "precision",
          .help =
              "Of the samples that the model calls positive, the share that are. With two classes class 1 is "
              "positive; several classes or outputs: the mean over them (macro)",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = false,
          .make = [](const OutputForm& form, Index outputs) {
            return std::make_unique<ShareOfHits>(Questions(form.targets, outputs), said);
          }};
}

MetricEntry recall_entry() {
  return {.name = "recall",
          .help =
              "Of the positive samples, the share that the model calls so. With two classes class 1 is "
              "positive; several classes or outputs: the mean over them (macro)",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = false,
          .make = [](const OutputForm& form, Index outputs) {
            return std::make_unique<ShareOfHits>(Questions(form.targets, outputs), is_true);
          }};
}

MetricEntry f1_entry() {
  return {.name = "f1",
          .help =
              "2 precision * recall / (precision + recall) of a class (F1). With two classes class 1 is "
              "positive; several classes or outputs: the mean over them (macro)",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = false,
          .make =
              [](const OutputForm& form, Index outputs) {
                return std::make_unique<ShareOfHits>(Questions(form.targets, outputs), mean_of_both);
              },
          .by_name = true};
}

}  // namespace lockstep
