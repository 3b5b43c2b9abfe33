// The members of an ensemble as the first dimension of a sample.
#pragma once

#include "lockstep/base/errors.h"
#include "lockstep/math/shape.h"

namespace lockstep {

inline constexpr const char* kNoMembers =
    "expected the members of an ensemble, which tabm(k) begins: put it before";

/// How many there are. Errors: ConfigError if the sample has not the shape of an ensemble's; Model finds
/// those that have it by chance.
inline Index members_of(const Shape& sample) {
  if (sample.dims.size() != 2) throw ConfigError(kNoMembers);
  return sample.dims.front();
}

}  // namespace lockstep
