#include <cmath>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

// 0 where a row of outputs or targets has no direction: all of it is 0.
double cosine(const MetricRows& rows, Index row) {
  double both = 0;
  double outputs = 0;
  double targets = 0;
  for (Index i = 0; i < rows.outputs.cols(); ++i) {
    const auto output = static_cast<double>(rows.outputs(row, i));
    const auto target = static_cast<double>(rows.targets(row, i));
    both += output * target;
    outputs += output * output;
    targets += target * target;
  }
  const double lengths = std::sqrt(outputs) * std::sqrt(targets);
  return lengths == 0 ? 0 : both / lengths;
}

class CosineSimilarity final : public Metric {
 public:
  MetricNeeds needs() const override { return {.sums = 1}; }

  void collect(const MetricRows& rows, const MetricParts& parts) const override {
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      parts.sums[0] += rows.weights[row] * cosine(rows, row);
    }
  }

  std::optional<double> value(const MetricTotals& totals) const override {
    return totals.sums[0] / totals.weight;
  }
};

}  // namespace

MetricEntry cosine_similarity_entry() {
  return {.name = "cosine_similarity",
          .help =
              "Cosine of the angle between the outputs and the targets of a record; train.loss "
              "'cosine_distance'",
          .targets = {TargetKind::kValue},
          .smaller_is_better = false,
          .make = [](const OutputForm&, Index) { return std::make_unique<CosineSimilarity>(); },
          .suits = [](const OutputForm& form) { return form.direction; }};
}

}  // namespace lockstep
