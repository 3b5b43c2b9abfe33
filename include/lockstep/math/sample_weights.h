// How much each sample of a batch counts: its loss, and all that is measured of it, is multiplied by its
// weight. Where targets are missing (NaN), a sample counts with the share of its targets that is there.
#pragma once

#include <algorithm>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

struct SampleWeights {
  std::span<const Scalar> values = {};  ///< row by row, each finite and not negative; empty: each weighs 1

  std::span<const Scalar> present = {};  ///< row by row, how many targets are there; empty: all of them
  Index targets = 1;                     ///< columns of targets; read where `present` is given

  bool given() const { return !values.empty(); }
  double operator[](Index row) const { return given() ? static_cast<double>(at(values, row)) : 1.0; }
  /// The sum of the weights of the first `rows` rows, each times the share of its targets that is there,
  /// added in order: what a sum of losses is divided by.
  double sum(Index rows) const {
    if (present.empty() && !given()) return static_cast<double>(rows);
    double total = 0;
    for (Index row = 0; row < rows; ++row) {
      total += present.empty() ? (*this)[row] : (*this)[row] * static_cast<double>(at(present, row));
    }
    return present.empty() ? total : total / static_cast<double>(targets);
  }
};

/// sum / weight, but 0 if the weight is 0: such samples teach nothing.
inline double mean_of(double sum, double weight) {
  return weight > 0 ? sum / weight : 0;
}

/// Takes the last column of `labels` out into `taken`; gives the columns before it, which are packed at its
/// start.
inline Matrix take_last_column(Matrix& labels, std::span<Scalar> taken) {
  const Index left = labels.cols() - 1;
  Scalar* to = labels.data();
  for (Index row = 0; row < labels.rows(); ++row) {
    const Scalar* from = labels.data() + row * labels.cols();
    at(taken, row) = from[left];
    to = std::copy_n(from, left, to);  // never behind `from`
  }
  return {labels.data(), labels.rows(), left};
}

}  // namespace lockstep
