#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

// The mean over samples, targets and levels.
class Pinball final : public Metric {
 public:
  explicit Pinball(std::vector<double> levels) : levels_(std::move(levels)) {}

  MetricNeeds needs() const override { return {.sums = 1}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    double sum = 0;
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      for (Index i = 0; i < rows.outputs.cols(); ++i) {
        const double level = at(levels_, i % std::ssize(levels_));
        const double d = static_cast<double>(rows.targets(row, i / std::ssize(levels_))) -
                         static_cast<double>(rows.outputs(row, i));
        sum += rows.weights[row] * (d > 0 ? level * d : (level - 1) * d);
      }
    }
    parts.sums[0] += sum / static_cast<double>(rows.outputs.cols());
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return totals.sums[0] / totals.weight;
  }

 private:
  std::vector<double> levels_;
};

}  // namespace

MetricEntry pinball_entry() {
  return {.name = "pinball",
          .help = "The quantile loss, the mean over the levels of train.quantiles; train.loss 'quantile'",
          .targets = {TargetKind::kValue},
          .smaller_is_better = true,
          .make = [](const OutputForm& form, Index) { return std::make_unique<Pinball>(form.quantiles); },
          .suits = [](const OutputForm& form) { return !form.quantiles.empty(); }};
}

}  // namespace lockstep
