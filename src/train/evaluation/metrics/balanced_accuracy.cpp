#include "lockstep/train/evaluation/metric.h"
#include "questions.h"

namespace lockstep {
namespace {

class BalancedAccuracy final : public Metric {
 public:
  BalancedAccuracy(const OutputForm& form, Index outputs)
      : questions_(form.targets, outputs), counts_no_(form.targets == TargetKind::kBinary || outputs == 2) {}

  MetricNeeds needs() const override { return {.sums = questions_.size() * Index{kColumns}}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      const double weight = rows.weights[row];
      questions_.visit_answers(rows, row, [&](Index question, bool truth, bool guess) {
        double* sums = parts.sums.data() + question * Index{kColumns};
        sums[truth ? kTrue : kFalse] += weight;
        if (truth == guess) sums[truth ? kHits : kRejections] += weight;
      });
    }
  }

  // A class that no sample is of does not count (scikit-learn's rule).
  std::optional<double> value(const MetricTotals& totals) const override {
    return mean_over(questions_.size(), [&](Index question) -> std::optional<double> {
      const double* sums = totals.sums.data() + question * Index{kColumns};
      return mean_over(counts_no_ ? 2 : 1, [&](Index no) -> std::optional<double> {
        const double all = sums[no == 0 ? kTrue : kFalse];
        if (all == 0) return std::nullopt;
        return sums[no == 0 ? kHits : kRejections] / all;
      });
    });
  }

 private:
  // Sums of weights for each question: of the samples that it is true of, of those of them that the model
  // says so of, and the same of the samples that it is not true of.
  enum Column : std::size_t { kTrue, kHits, kFalse, kRejections, kColumns };

  Questions questions_;
  bool counts_no_;  // a question stands for two classes
};

}  // namespace

MetricEntry balanced_accuracy_entry() {
  return {.name = "balanced_accuracy",
          .help =
              "The mean over the classes of the share of their samples that are recognised, so that each "
              "class counts alike. Several outputs: the mean over them",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = false,
          .make = [](const OutputForm& form,
                     Index outputs) { return std::make_unique<BalancedAccuracy>(form, outputs); },
          .by_name = true};
}

}  // namespace lockstep
