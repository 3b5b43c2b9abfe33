// The shape of one sample: what a layer takes and gives, without the batch dimension.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

struct Shape {
  std::vector<Index> dims;

  /// Scalars in one sample.
  Index size() const;
  bool operator==(const Shape&) const = default;
};

/// "28x28", "10".
std::string to_string(const Shape& shape);

}  // namespace lockstep
