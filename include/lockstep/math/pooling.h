// Pooling in two dimensions over channels-last samples (a row is height x width x channels), channel by
// channel. A window as large as the image pools globally.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/matrix.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// Requires that no position of a window lies wholly in the padding.
struct PoolingShape {
  Index in_height = 1;
  Index in_width = 1;
  Index channels = 1;
  Window vertical = {};
  Window horizontal = {};

  Index out_height() const { return vertical.positions(in_height); }
  Index out_width() const { return horizontal.positions(in_width); }
  /// Scalars of one sample.
  Index in_size() const { return in_height * in_width * channels; }
  Index out_size() const { return out_height() * out_width() * channels; }
};

/// y(n x out) = the largest x of each window, the first of equal ones; NaN if one of them is NaN.
/// `winners` (n x out): which scalar of the sample that was.
void max_pool_forward(const PoolingShape& shape, const ConstMatrix& x, Matrix& y,
                      std::span<std::int32_t> winners);
/// dx(n x in): each dy goes to its winner.
void max_pool_backward(const PoolingShape& shape, const ConstMatrix& dy,
                       std::span<const std::int32_t> winners, Matrix& dx);

/// y(n x out) = the mean of the x of each window; the padding does not count.
void average_pool_forward(const PoolingShape& shape, const ConstMatrix& x, Matrix& y);
/// dx(n x in): each dy is shared evenly by its window.
void average_pool_backward(const PoolingShape& shape, const ConstMatrix& dy, Matrix& dx);

}  // namespace lockstep
