#include "probabilities.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

double log_sum_exp(const ConstMatrix& outputs, Index row) {
  const Scalar* first = outputs.data() + row * outputs.cols();
  const auto largest = static_cast<double>(*std::max_element(first, first + outputs.cols()));
  double sum = 0;
  for (Index i = 0; i < outputs.cols(); ++i) sum += std::exp(static_cast<double>(first[i]) - largest);
  return largest + std::log(sum);
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace lockstep
