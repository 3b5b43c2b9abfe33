#include "lockstep/math/sample_weights.h"

#include <algorithm>

namespace lockstep {

double SampleWeights::sum(Index rows) const {
  double total = 0;
  if (!present.empty()) {
    for (Index row = 0; row < rows; ++row) total += (*this)[row] * static_cast<double>(at(present, row));
    return total / static_cast<double>(targets);
  }
  if (!given()) return static_cast<double>(rows);
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
