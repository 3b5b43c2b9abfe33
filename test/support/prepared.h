// Steps of a loader, for tests that look at the samples themselves.
#pragma once

#include "lockstep/data/loading/loader.h"

namespace lockstep::test {

/// Prepares here what the loader leaves to those who train.
inline const StepBatch& prepared(const StepBatch& batch) {
  for (const ReplicaBatch& samples : batch.replicas) {
    if (samples.prepare && samples.rows > 0) samples.prepare();
  }
  return batch;
}

}  // namespace lockstep::test
