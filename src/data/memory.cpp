#include "lockstep/data/memory.h"

#include "lockstep/base/memory_limit.h"

namespace lockstep {

Index memory_limit_bytes(const DataOptions& options) {
  return static_cast<Index>(options.memory_limit * kGib);
}

bool is_streamed(const DataOptions& options, const DatasetInfo& info) {
  if (options.memory != MemoryMode::kAuto) return options.memory == MemoryMode::kStream;
  return info.rows * info.record_bytes > memory_limit_bytes(options);
}

}  // namespace lockstep
