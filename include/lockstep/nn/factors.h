// Gradients of weights as two factors, dy^T x: where few samples make a large one, those are less to write
// and read than their product.
#pragma once

#include "lockstep/base/types.h"

namespace lockstep {

/// A tensor (out x in) of the arena whose gradient is the product of two factors, dy^T x.
struct FactoredTensor {
  Index op = 0;  ///< number of the op in the model
  Range range;
  Index out = 0;
  Index in = 0;
};

/// The buffers in which a layer leaves x and dy instead of their product, for n samples.
struct FactorBuffers {
  Scalar* x = nullptr;     ///< n x in
  Scalar* dy_t = nullptr;  ///< out x n, the transpose of dy: each row starts `stride` behind the one before
  Index stride = 0;

  /// The buffers of the samples from this one on.
  FactorBuffers from_row(Index row, Index in) const {
    return x == nullptr ? FactorBuffers{} : FactorBuffers{x + row * in, dy_t + row, stride};
  }
};

}  // namespace lockstep
