// The shape of one sample: what a layer takes and gives, without the batch dimension.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// A bound on the size of any one tensor, so that no product of sizes overflows.
inline constexpr Index kMostScalars = Index{1} << 40;

struct Shape {
  std::vector<Index> dims;

  /// Scalars in one sample. Errors: ConfigError if they are more than kMostScalars.
  Index size() const;
  bool operator==(const Shape&) const = default;
};

/// "28x28", "10".
std::string to_string(const Shape& shape);

}  // namespace lockstep
