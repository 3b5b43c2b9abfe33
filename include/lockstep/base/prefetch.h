// Asking for memory ahead of its use, line by line, where the processor would not guess it.
#pragma once

#include <span>

#include "lockstep/base/types.h"

namespace lockstep {

/// Memory that is read soon.
inline void prefetch_to_read(std::span<const Scalar> memory) {
  for (std::size_t i = 0; i < memory.size(); i += kAlignment) __builtin_prefetch(memory.data() + i);
}

/// Memory that is written soon. What other ranks have read would be fetched twice: as a copy when it is read,
/// and as the only one when it is written.
inline void prefetch_to_write(std::span<const Scalar> memory) {
  for (std::size_t i = 0; i < memory.size(); i += kAlignment) __builtin_prefetch(memory.data() + i, 1);
}

}  // namespace lockstep
