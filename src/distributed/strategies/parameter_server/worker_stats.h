// The fate of the gradients of each worker: updates are counted by the first server, staleness by every
// server.
#pragma once

#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/strategies/asynchronous.h"

namespace lockstep {

class WorkerStats {
 public:
  explicit WorkerStats(Index workers);

  void count_computed(std::size_t worker);
  void count_step(std::size_t worker, Index samples);
  void count_drop(std::size_t worker, Index samples);
  void count_staleness(std::size_t worker, Index staleness);
  void count_ahead(std::size_t worker, Index ahead);

  /// *Collective.* The counts of all ranks together.
  std::vector<WorkerRecord> gather(Communicator& comm) const;

 private:
  // The histogram of staleness goes up to this; beyond, it is counted as this. The sum is exact.
  static constexpr Index kMaxStaleness = 1023;
  enum Column : Index {
    kComputed,
    kSteps,
    kSamples,
    kDropped,
    kDroppedSamples,
    kAhead,
    kStalenessSum,
    kStaleness
  };
  static constexpr Index kColumns = kStaleness + kMaxStaleness + 1;

  Index& at(std::size_t worker, Index column) {
    return counts_[worker * static_cast<std::size_t>(kColumns) + static_cast<std::size_t>(column)];
  }

  std::vector<Index> counts_;  // workers x columns
};

}  // namespace lockstep
