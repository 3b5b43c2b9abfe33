#include <cmath>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

// Targets are floats, so their squares are exact in double; below this share of their mean square, what the
// subtraction leaves of their variance is rounding.
constexpr double kLeastVariance = 1e-12;

class R2 final : public Metric {
 public:
  R2(Link link, Index outputs) : link_(link), outputs_(outputs) {}

  MetricNeeds needs() const override { return {.sums = outputs_ * Index{kColumns}}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      const double weight = rows.weights[row];
      for (Index i = 0; i < outputs_; ++i) {
        if (std::isnan(rows.targets(row, i))) continue;
        double* sums = parts.sums.data() + i * Index{kColumns};
        const auto target = static_cast<double>(rows.targets(row, i));
        const double error = predicted_value(link_, rows.outputs(row, i)) - target;
        sums[kWeight] += weight;
        sums[kTarget] += weight * target;
        sums[kSquare] += weight * (target * target);
        sums[kError] += weight * (error * error);
      }
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    double sum = 0;
    for (Index i = 0; i < outputs_; ++i) {
      const double* sums = totals.sums.data() + i * Index{kColumns};
      if (sums[kWeight] == 0) return std::nullopt;
      const double spread = sums[kSquare] - sums[kTarget] * sums[kTarget] / sums[kWeight];
      if (spread <= kLeastVariance * sums[kSquare]) return std::nullopt;
      sum += 1 - sums[kError] / spread;
    }
    return sum / static_cast<double>(outputs_);
  }

 private:
  // Columns of one output: the sums of the weights of its targets, of the targets, of their squares, and of
  // the squared errors.
  enum Column : std::size_t { kWeight, kTarget, kSquare, kError, kColumns };

  Link link_;
  Index outputs_;
};

}  // namespace

MetricEntry r2_entry() {
  return {
      .name = "r2",
      .help =
          "1 - squared error / squared distance of the targets from their mean: 1 is perfect, 0 no "
          "better than that mean. Several outputs: the mean over them",
      .targets = {TargetKind::kValue},
      .smaller_is_better = false,
      .make = [](const OutputForm& form, Index outputs) { return std::make_unique<R2>(form.link, outputs); },
      .suits = [](const OutputForm& form) { return form.outputs_per_target() == 1 && !form.direction; }};
}

}  // namespace lockstep
