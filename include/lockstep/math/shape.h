// The shape of one sample: what a layer takes and gives, without the batch dimension.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// A bound on the size of any one tensor, so that no product of sizes overflows.
inline constexpr Index kMaxScalars = Index{1} << 40;

struct Shape {
  std::vector<Index> dims;

  /// Scalars in one sample. Errors: ConfigError if they are more than kMaxScalars.
  Index size() const;
  bool operator==(const Shape&) const = default;
};

/// "28x28", "10".
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

}  // namespace lockstep
