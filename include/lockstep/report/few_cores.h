// The warning that a rank has more threads than cores to run on.
#pragma once

#include <span>
#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

/// `cores[rank]`: those that the rank may run on. Names the rank that has the fewest, with the corrected
/// command line; "" if that one has a core for each of its `threads`.
std::string few_cores_warning(std::span<const Index> cores, Index threads);

}  // namespace lockstep
