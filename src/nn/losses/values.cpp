// Losses of values that look at several numbers of a record at once.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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

double product(const ConstMatrix& a, const ConstMatrix& b, Index row) {
  double sum = 0;
  for (Index i = 0; i < a.cols(); ++i) sum += static_cast<double>(a(row, i)) * static_cast<double>(b(row, i));
  return sum;
}

// Zeros have no direction: where the outputs or the targets of a row are all 0, its loss is 1 and its
// gradient 0.
class CosineDistance final : public Loss {
 public:
  TargetKind targets() const override { return TargetKind::kValue; }

  OutputForm form() const override {
    OutputForm form(TargetKind::kValue);
    form.direction = true;
    return form;
  }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    double total = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      const double square = product(outputs, outputs, row);
      const double lengths = std::sqrt(square) * std::sqrt(product(targets, targets, row));
      const double scale = lengths == 0 ? 0 : 1 / lengths;
      const double cosine = product(outputs, targets, row) * scale;
      total += 1 - cosine;
      for (Index i = 0; gradient != nullptr && i < outputs.cols(); ++i) {
        const double along = square == 0 ? 0 : cosine * static_cast<double>(outputs(row, i)) / square;
        (*gradient)(row, i) = static_cast<Scalar>(along - static_cast<double>(targets(row, i)) * scale);
      }
    }
    return total;
  }
};

}  // namespace

std::vector<LossEntry> value_losses() {
  return {{.name = "quantile",
           .help = "Pinball loss of each level q of quantiles, max(q d, (q - 1) d) with d = target - output "
                   "(Koenker & Bassett 1978): targets x levels outputs",
           .options = {"train.quantiles"},
           .make =
               [](const LossOptions& options) {
                 check_levels(options.quantiles);
                 return std::make_unique<Quantile>(options.quantiles);
               }},
          {.name = "cosine_distance",
           .help = "1 - cosine of the angle between the outputs and the targets of a record",
           .options = {},
           .make = [](const LossOptions&) { return std::make_unique<CosineDistance>(); }}};
}

}  // namespace lockstep
