#include "lockstep/train/evaluation/calibration.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

class Ece final : public Metric {
 public:
  explicit Ece(TargetKind targets) : targets_(targets) {}

  MetricNeeds needs() const override { return {.sums = kReliabilitySums}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    collect_reliability(targets_, rows, parts.sums);
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return calibration_error(totals.sums);
  }

 private:
  TargetKind targets_;
};

}  // namespace

MetricEntry ece_entry() {
  return {.name = "ece",
          .help =
              "Expected calibration error: |mean probability - share that is so| of 15 bins of equal width, "
              "the mean over the samples (Guo et al. 2017). Of yes or no and of two classes the probability "
              "of yes, of more that of the predicted class. Not of the margins of hinge losses",
          .targets = {TargetKind::kClass, TargetKind::kBinary},
          .smaller_is_better = true,
          .make = [](const OutputForm& form, Index) { return std::make_unique<Ece>(form.targets); },
          .suits = has_probabilities,
          .by_name = true};
}

}  // namespace lockstep
