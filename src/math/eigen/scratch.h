// Memory that a kernel needs during one call: kept by each thread and only grown, so a step after the first
// allocates nothing.
#pragma once

#include <array>

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {

enum class ScratchUse { kPatches, kWeights, kWide, kOtherWide };

/// At least `size` scalars with any content; valid until the next call for the same use in this thread.
inline Scalar* scratch(ScratchUse use, Index size) {
  thread_local std::array<AlignedBuffer<Scalar>, 4> buffers;
  AlignedBuffer<Scalar>& buffer = buffers[static_cast<std::size_t>(use)];
  if (buffer.size() < size) buffer = AlignedBuffer<Scalar>(size);
  return buffer.data();
}

}  // namespace lockstep
