// What the config says about how gradients become weights. Defaults stand here and nowhere else.
#pragma once

#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

/// How the gradients of the replicas are added: plain MPI, or along the fixed tree (same bits on any rank
/// count).
enum class Reduction { kNative, kOrdered };

struct DistOptions {
  std::string strategy = "allreduce";
  Reduction reduction = Reduction::kNative;
  Index bucket_kib = 4096;
};

}  // namespace lockstep
