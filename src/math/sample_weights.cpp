#include "lockstep/math/sample_weights.h"

#include <algorithm>

namespace lockstep {

double SampleWeights::sum(Index rows) const {
  if (!given()) return static_cast<double>(rows);
  double total = 0;
  for (Index row = 0; row < rows; ++row) total += (*this)[row];
  return total;
}

void take_weights(Matrix& labels, std::span<Scalar> weights) {
  const Index targets = labels.cols() - 1;
  Scalar* to = labels.data();
  for (Index row = 0; row < labels.rows(); ++row) {
    const Scalar* from = labels.data() + row * labels.cols();
    at(weights, row) = from[targets];
    to = std::copy_n(from, targets, to);  // never behind `from`
  }
}

}  // namespace lockstep
