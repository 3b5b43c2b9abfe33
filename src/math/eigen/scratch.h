// Memory that a kernel needs during one call: kept by each thread and only grown, so a step after the first
// allocates nothing.
#pragma once

#include "lockstep/base/types.h"

namespace lockstep {

enum class ScratchUse { kPatches, kWeights, kWide, kOtherWide };

/// At least `size` scalars with any content; valid until the next call for the same use in this thread.
Scalar* scratch(ScratchUse use, Index size);

}  // namespace lockstep
