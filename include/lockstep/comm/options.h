// Options for ranks that do not come, or do not agree. Defaults stand here and nowhere else.
#pragma once

#include "lockstep/base/types.h"

namespace lockstep {

/// Action when ranks that must hold the same weights do not: the run ends, or all get those of the majority.
enum class OnDesync { kStop, kRebroadcast };

struct CommOptions {
  double stall_seconds = 0;    ///< 0: automatic, from the longest step
  double abort_seconds = 600;  ///< 0: never
  Index verify_every = 1000;   ///< 0: never
  OnDesync on_desync = OnDesync::kStop;
};

}  // namespace lockstep
