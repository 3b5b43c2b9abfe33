#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/nn/loss.h"

namespace lockstep {
namespace {

// The mean over targets and levels. The outputs of a target, one for each level, stand side by side.
class Quantile final : public Loss {
 public:
  explicit Quantile(const std::vector<double>& levels)
      : levels_(levels), factors_(levels.begin(), levels.end()) {}

  TargetKind targets() const override { return TargetKind::kValue; }

  OutputForm form() const override {
    OutputForm form(TargetKind::kValue);
    form.quantiles = levels_;
    return form;
  }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    const auto levels = static_cast<Index>(factors_.size());
    const Scalar share = 1 / static_cast<Scalar>(outputs.cols());
    double total = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      double sum = 0;
      for (Index i = 0; i < outputs.cols(); ++i) {
        const Scalar level = at(factors_, i % levels);
        const Scalar d = outputs(row, i) - targets(row, i / levels);
        // An output that is too high costs 1 - level for each unit, one that is too low costs level.
        sum += static_cast<double>(d > 0 ? (1 - level) * d : -level * d);
        if (gradient != nullptr) (*gradient)(row, i) = share * (d > 0 ? 1 - level : (d < 0 ? -level : 0));
      }
      total += sum / static_cast<double>(outputs.cols());
    }
    return total;
  }

 private:
  std::vector<double> levels_;
  std::vector<Scalar> factors_;
};

void check_levels(const std::vector<double>& levels) {
  error_if(levels.empty(), "train.quantiles names no level: give one or several, as in [0.1, 0.5, 0.9]");
  if (std::ranges::adjacent_find(levels, std::greater_equal<>()) == levels.end()) return;
  std::vector<double> sorted = levels;
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  throw ConfigError(
      "train.quantiles: levels stand in rising order, each once; found [{}], expected [{}]: the outputs of "
      "the model are in this order",
      fmt::join(levels, ", "), fmt::join(sorted, ", "));
}

}  // namespace

LossEntry quantile_entry() {
  return {.name = "quantile",
          .help =
              "Pinball loss of each level q of quantiles, max(q d, (q - 1) d) with d = target - output "
              "(Koenker & Bassett 1978): targets x levels outputs",
          .options = {"train.quantiles"},
          .make = [](const LossOptions& options) {
            check_levels(options.quantiles);
            return std::make_unique<Quantile>(options.quantiles);
          }};
}

}  // namespace lockstep
