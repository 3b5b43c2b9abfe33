// Memory of a thread for the numbers that a layer needs inside one call.
#pragma once

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {

/// At least so many scalars, with any content, until the thread's next call.
inline Scalar* layer_scratch(Index size) {
  thread_local AlignedBuffer<Scalar> scratch;
  if (scratch.size() < size) scratch = AlignedBuffer<Scalar>(size);
  return scratch.data();
}

}  // namespace lockstep
