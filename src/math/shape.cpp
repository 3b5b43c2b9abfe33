#include "lockstep/math/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/errors.h"

namespace lockstep {

Index Shape::size() const {
  Index product = 1;
  for (const Index dim : dims) {
    if (__builtin_mul_overflow(product, dim, &product) || product > kMaxScalars) {
      throw ConfigError("a sample or tensor of {} has more than {} numbers", to_string(*this), kMaxScalars);
    }
  }
  return product;
}

std::string to_string(const Shape& shape) {
  if (const auto sequence = as_sequence(shape))
    return fmt::format("{} positions of {}", sequence->positions, sequence->channels);
  return fmt::format("{}", fmt::join(shape.dims, "x"));
}

std::optional<ImageShape> as_image(const Shape& shape) {
  const std::vector<Index>& dims = shape.dims;
  if (shape.sequence) return std::nullopt;
  if (dims.size() == 2) return ImageShape{.height = dims[0], .width = dims[1]};
  if (dims.size() == 3) return ImageShape{.height = dims[0], .width = dims[1], .channels = dims[2]};
  return std::nullopt;
}

std::optional<SequenceShape> as_sequence(const Shape& shape) {
  if (!shape.sequence) return std::nullopt;
  return SequenceShape{.positions = shape.dims[0], .channels = shape.dims[1]};
}

}  // namespace lockstep
