#include <algorithm>
#include <cassert>

#include "lockstep/nn/loss.h"
#include "row_reductions.h"

namespace lockstep {
namespace {

// The class other than the target with the highest output, the first of equals; the target itself if it is
// alone.
Index find_rival(const ConstMatrix& outputs, Index row, Index target) {
  Index rival = target;
  for (Index i = 0; i < outputs.cols(); ++i) {
    if (i != target && (rival == target || outputs(row, i) > outputs(row, rival))) rival = i;
  }
  return rival;
}

class MulticlassHinge final : public Loss {
 public:
  TargetKind targets() const override { return TargetKind::kClass; }
  OutputForm form() const override { return {TargetKind::kClass, Link::kIdentity}; }

  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    double total = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      const auto target = static_cast<Index>(targets(row, 0));
      assert(target < outputs.cols() && "the data set checks its labels");
      const std::span<const Scalar> x(outputs.data() + row * outputs.cols(),
                                      static_cast<std::size_t>(outputs.cols()));
      const Index rival = find_rival(outputs, row, target);
      const Scalar lack = rival == target ? 0 : 1 + outputs(row, rival) - outputs(row, target);
      // The second term is 0, or NaN where an output of any class is not finite: as it should.
      total += static_cast<double>(std::max(lack, Scalar{0})) + 0 * row_sum(x);
      if (gradient == nullptr) continue;
      std::fill_n(gradient->data() + row * gradient->cols(), gradient->cols(), Scalar{0});
      if (!(lack > 0)) continue;
      (*gradient)(row, rival) = 1;
      (*gradient)(row, target) = -1;
    }
    return total;
  }
};

}  // namespace

LossEntry multiclass_hinge_entry() {
  return {.name = "multiclass_hinge",
          .help =
              "max(0, 1 + highest output of another class - output of the target's) (Crammer & Singer "
              "2001); the outputs are scores",
          .options = {},
          .make = [](const LossOptions&) { return std::make_unique<MulticlassHinge>(); }};
}

}  // namespace lockstep
