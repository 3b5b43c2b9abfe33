#include "scratch.h"

#include <array>

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {

Scalar* scratch(ScratchUse use, Index size) {
  thread_local std::array<AlignedBuffer<Scalar>, 4> buffers;
  AlignedBuffer<Scalar>& buffer = buffers[static_cast<std::size_t>(use)];
  if (buffer.size() < size) buffer = AlignedBuffer<Scalar>(size);
  return buffer.data();
}

}  // namespace lockstep
