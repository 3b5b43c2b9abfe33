#include "lockstep/nn/gradient_check.h"

#include <cmath>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {

void GradientCheck::begin(Index rows, const std::optional<GradientLimit>& limit) {
  rows_ = rows;
  limit_ = limit;
  good_ = true;
}

// Small factors have a small product. That of others, which no sound training has, is looked at itself.
Range GradientCheck::check_factors(const ModelOp& op, const ConstMatrix& x, const ConstMatrix& dy,
                                   bool factored) {
  if (!limit_) return {};
  const Range tensor = op.shares ? Range{} : op.layer->weight_use().factored;
  const bool less_to_read = dy.rows() == rows_ && x.size() + dy.size() < tensor.size();
  if (!factored && !less_to_read) return {};
  const Scalar of_sample = limit_->most / static_cast<Scalar>(limit_->samples);
  const Scalar small = std::sqrt(of_sample);
  if (all_within(dy.values(), small) && all_within(x.values(), small)) return tensor;
  if (!factored) return {};
  const RowMajorMatrix product = as_eigen(dy).transpose() * as_eigen(x);
  good_ = good_ && all_within(ConstMatrix(product.data(), product.rows(), product.cols()).values(),
                              static_cast<Scalar>(dy.rows()) * of_sample);
  return tensor;
}

void GradientCheck::check_sums(const ModelOp& op, Range checked, std::span<const Scalar> gradient) {
  if (!limit_ || !limit_->complete) return;
  if (checked.empty()) checked = {op.params.begin, op.params.begin};
  for (const Range rest : {Range{op.params.begin, checked.begin}, Range{checked.end, op.params.end}}) {
    good_ = good_ && all_within(part(gradient, rest), limit_->most);
  }
}

}  // namespace lockstep
