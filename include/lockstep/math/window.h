// How a window slides along one axis of an image. Convolution and pooling have two: vertical and horizontal.
#pragma once

#include <algorithm>
#include <compare>

#include "lockstep/base/types.h"

namespace lockstep {

/// A window of `size` taps, `dilation` apart, that moves by `stride` over an axis with padding before and
/// after.
struct Window {
  Index size = 1;
  Index stride = 1;
  Index dilation = 1;
  Index pad_before = 0;
  Index pad_after = 0;

  auto operator<=>(const Window&) const = default;

  /// How many positions the window takes on an axis of `length`; 0 if it does not fit.
  Index positions(Index length) const {
    const Index capacity = length + pad_before + pad_after - ((size - 1) * dilation + 1);
    return capacity < 0 ? 0 : capacity / stride + 1;
  }
  /// The point of the axis that a tap falls on at a position: negative, or the length and above, in the
  /// padding.
  Index input_position(Index position, Index tap) const {
    return position * stride - pad_before + tap * dilation;
  }
  /// The taps that fall on the axis, not into the padding.
  Range taps_inside(Index position, Index length) const {
    const Index first = input_position(position, 0);
    if (first >= 0 && input_position(position, size - 1) < length) return {0, size};  // the usual case
    const Index begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
    const Index end = first >= length ? 0 : (length - first + dilation - 1) / dilation;
    return {std::min(begin, size), std::min(end, size)};
  }
};

}  // namespace lockstep
