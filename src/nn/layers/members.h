// The members of an ensemble as the first dimension of a sample.
#pragma once

#include "lockstep/base/errors.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// How many there are. Errors: ConfigError if the sample is none of an ensemble.
inline Index members_of(const Shape& sample) {
  if (sample.dims.size() != 2)
    throw ConfigError("expected the members of an ensemble, which tabm(k) begins: put it before");
  return sample.dims.front();
}

}  // namespace lockstep
