// Whether a data set is held in memory or read as it is needed.
#pragma once

#include "lockstep/data/dataset.h"
#include "lockstep/data/options.h"

namespace lockstep {

/// data.memory_limit in bytes.
Index memory_limit_bytes(const DataOptions& options);

/// The choice of data.memory; auto streams a data set that is larger than the limit. That depends on the
/// config and the files alone, because the order of samples does, and must not change with the number of
/// ranks.
bool is_streamed(const DataOptions& options, const DatasetInfo& info);

}  // namespace lockstep
