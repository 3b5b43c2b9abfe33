#include "lockstep/train/evaluation/metric.h"
#include "questions.h"

namespace lockstep {
namespace {

// Weighted counts of one class: actual positives, predicted positives, true positives.
enum Column : std::size_t { kTrue, kSaid, kBoth, kColumns };

// kBoth divided by kSaid is precision, by kTrue recall; 0 where the divisor is 0. A question that is neither
// true of any sample nor said of any does not count (scikit-learn's rule for classes, with zero_division=0).
class ShareOfHits final : public Metric {
 public:
  ShareOfHits(const Questions& questions, Column divisor) : questions_(questions), divisor_(divisor) {}

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
      return sums[divisor_] == 0 ? 0 : sums[kBoth] / sums[divisor_];
    });
  }

 private:
  Questions questions_;
  Column divisor_;
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
            return std::make_unique<ShareOfHits>(Questions(form.targets, outputs), kSaid);
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
            return std::make_unique<ShareOfHits>(Questions(form.targets, outputs), kTrue);
          }};
}

}  // namespace lockstep
