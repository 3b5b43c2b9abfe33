#include "entries.h"
#include "questions.h"

namespace lockstep {
namespace {

// Of one question: how many samples it is true of, how many the model says so of, and how many both.
enum Column : std::size_t { kTrue, kSaid, kBoth, kColumns };

// kBoth divided by kSaid is precision, by kTrue recall; 0 where the divisor is 0. A question that is neither
// true of any sample nor said of any does not count (scikit-learn's rule for classes, with zero_division=0).
class ShareOfHits final : public Metric {
 public:
  ShareOfHits(const Questions& questions, Column divisor) : questions_(questions), divisor_(divisor) {}

  MetricNeeds needs() const override { return {.counts = questions_.size() * Index{kColumns}}; }

  void collect(const ConstMatrix& outputs, const ConstMatrix& targets,
               const MetricParts& parts) const override {
    for (Index row = 0; row < outputs.rows(); ++row) {
      questions_.visit_answers(outputs, targets, row, [&](Index question, bool truth, bool guess) {
        Index* counts = parts.counts.data() + question * Index{kColumns};
        counts[kTrue] += truth ? 1 : 0;
        counts[kSaid] += guess ? 1 : 0;
        counts[kBoth] += truth && guess ? 1 : 0;
      });
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return mean_over(questions_.size(), [&](Index question) -> std::optional<double> {
      const Index* counts = totals.counts.data() + question * Index{kColumns};
      if (counts[kTrue] == 0 && counts[kSaid] == 0) return std::nullopt;
      if (counts[divisor_] == 0) return 0;
      return static_cast<double>(counts[kBoth]) / static_cast<double>(counts[divisor_]);
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
          .make = [](TargetKind targets, Index outputs) {
            return std::make_unique<ShareOfHits>(Questions(targets, outputs), kSaid);
          }};
}

MetricEntry recall_entry() {
  return {.name = "recall",
          .help =
              "Of the positive samples, the share that the model calls so. With two classes class 1 is "
              "positive; several classes or outputs: the mean over them (macro)",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .make = [](TargetKind targets, Index outputs) {
            return std::make_unique<ShareOfHits>(Questions(targets, outputs), kTrue);
          }};
}

}  // namespace lockstep
