// A factor for each feature, which all rows of a matrix share.
#pragma once

#include "lockstep/base/types.h"

namespace lockstep {

/// to[row][i] = from[row][i] * scale[i]
inline void scale_rows(const Scalar* from, const Scalar* scale, Index rows, Index size, Scalar* to) {
  for (Index row = 0; row < rows; ++row) {
    for (Index i = 0; i < size; ++i) to[row * size + i] = from[row * size + i] * scale[i];
  }
}

/// sums[i] += a[row][i] * b[row][i], over the rows in order.
inline void add_products(const Scalar* a, const Scalar* b, Index rows, Index size, Scalar* sums) {
  for (Index row = 0; row < rows; ++row) {
    for (Index i = 0; i < size; ++i) sums[i] += a[row * size + i] * b[row * size + i];
  }
}

}  // namespace lockstep
