#include "lockstep/nn/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {

Index Shape::size() const {
  Index product = 1;
  for (const Index dim : dims) product *= dim;
  return product;
}

std::string to_string(const Shape& shape) {
  return fmt::format("{}", fmt::join(shape.dims, "x"));
}

}  // namespace lockstep
