// A loss that treats each output of a row by itself and takes their mean.
#pragma once

#include <vector>

#include "lockstep/nn/loss.h"
#include "row_reductions.h"

namespace lockstep {

/// The loss of one output and its derivative by that output.
struct PointLoss {
  Scalar value;
  Scalar slope;
};

/// `Pointwise` states `kTargets`, and by form() the form of its outputs if that is not the usual one. It maps
/// (output, target) to a PointLoss whose value is not finite when the output is not.
template <class Pointwise>
class PointwiseLoss final : public Loss {
 public:
  explicit PointwiseLoss(const Pointwise& pointwise) : pointwise_(pointwise) {}

  TargetKind targets() const override { return Pointwise::kTargets; }
  bool takes_missing_targets() const override { return true; }

  OutputForm form() const override {
    if constexpr (requires { pointwise_.form(); }) return pointwise_.form();
    return Loss::form();
  }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    const Index n = outputs.cols();
    std::vector<Scalar> values(static_cast<std::size_t>(n));
    std::vector<Scalar> unwanted(gradient ? 0 : static_cast<std::size_t>(n));
    double total = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      const Index start = row * n;
      Scalar* slopes = gradient ? gradient->data() + start : unwanted.data();
      evaluate_row(outputs.data() + start, targets.data() + start, slopes, values);
      total += row_sum(values) / static_cast<double>(n);
    }
    return total;
  }

 private:
  void evaluate_row(const Scalar* outputs, const Scalar* targets, Scalar* slopes,
                    std::span<Scalar> values) const {
    const Pointwise pointwise = pointwise_;
    const Scalar share = 1 / static_cast<Scalar>(values.size());
    Scalar* value = values.data();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const PointLoss point = pointwise(outputs[i], targets[i]);
      const bool there = targets[i] == targets[i];
      // Beside a missing target an output that is not finite still shows: x - x is 0 or NaN.
      value[i] = there ? point.value : outputs[i] - outputs[i];
      slopes[i] = there ? point.slope * share : Scalar{0};
    }
  }

  Pointwise pointwise_;
};

}  // namespace lockstep
