#include <cmath>

#include "lockstep/nn/loss.h"

namespace lockstep {
namespace {

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

LossEntry cosine_distance_entry() {
  return {.name = "cosine_distance",
          .help = "1 - cosine of the angle between the outputs and the targets of a record",
          .options = {},
          .make = [](const LossOptions&) { return std::make_unique<CosineDistance>(); }};
}

}  // namespace lockstep
