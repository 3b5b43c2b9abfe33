// A change that is made to records before a model sees them.
#pragma once

#include <functional>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

/// Changes the features of the records `ids`, the rows of x, as they were read. Local; several threads call
/// it at once.
using FeatureChange = std::function<void(std::span<const Index> ids, Matrix& x)>;

}  // namespace lockstep
