// The shape of one sample: what a layer takes and gives, without the batch dimension.
#pragma once

#include <algorithm>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// A bound on the size of any one tensor, so that no product of sizes overflows.
inline constexpr Index kMaxScalars = Index{1} << 40;

struct Shape {
  std::vector<Index> dims;
  /// The two dims are those of a SequenceShape.
  bool sequence = false;

  /// Scalars in one sample. Errors: ConfigError if they are more than kMaxScalars.
  Index size() const;
  bool operator==(const Shape&) const = default;
};

/// "28x28", "10"; of a sequence "28 positions of 4".
std::string to_string(const Shape& shape);

/// An image is `height` rows of `width` pixels of `channels` numbers, in this order in memory.
struct ImageShape {
  Index height = 0;
  Index width = 0;
  Index channels = 1;

  Index row_size() const { return width * channels; }
  Index pixels() const { return height * width; }
  Index size() const { return height * width * channels; }
};

/// A shape of three numbers as an image, or of two as one with one channel; nothing for other shapes.
std::optional<ImageShape> as_image(const Shape& shape);

/// A sequence is `positions` vectors of `channels` numbers, one behind the other in memory.
struct SequenceShape {
  Index positions = 0;
  Index channels = 1;

  Shape shape() const { return {.dims = {positions, channels}, .sequence = true}; }
};

/// The shape of a sequence; nothing for other shapes.
std::optional<SequenceShape> as_sequence(const Shape& shape);

// How a window slides along one axis of an image. Convolution and pooling have two: vertical and horizontal.

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
