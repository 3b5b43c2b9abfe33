#include "rows.h"

#include <algorithm>

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

double logistic(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

double second_of_two(const ConstMatrix& outputs, Index row) {
  return logistic(static_cast<double>(outputs(row, 1)) - static_cast<double>(outputs(row, 0)));
}

}  // namespace lockstep
