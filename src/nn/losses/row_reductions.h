// One row of numbers to one number, in an order that depends on the length alone.
#pragma once

#include <span>

#include "lockstep/base/types.h"

namespace lockstep {

/// The sum, added in double.
double row_sum(std::span<const Scalar> row);

/// The largest number of a row that is not empty; any of them if one is NaN.
Scalar row_max(std::span<const Scalar> row);

}  // namespace lockstep
