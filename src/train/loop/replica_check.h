// Whether ranks that must hold the same weights and optimizer state do: compared by a hash every so many
// steps. One 64-bit number of each rank is sent with what the ranks agree on anyway (RunControl); only where
// they differ is more looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/options.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

class ReplicaCheck {
 public:
  /// References outlive it.
  ReplicaCheck(Communicator& comm, SynchronousStrategy& strategy, const CommOptions& options)
      : comm_(comm), strategy_(strategy), options_(options) {}

  /// *Local*, after each step. Where a comparison is due on all ranks (where replicas do not share weights
  /// all the time, when they next do): what this rank adds to a sum that is 0 if they hold the same.
  std::optional<std::uint64_t> checksum(Index steps_done);
  /// *Collective*, where that sum is not 0. Errors: AgreedError (exit code 4) with the first tensor that
  /// differs, the ranks and by how much, unless comm.on_desync is rebroadcast: then all get the state of the
  /// majority (where there is none, of the lowest rank's side).
  void report(Index steps_done);
  /// How often that was done.
  Index repairs() const { return repairs_; }

 private:
  std::string compare(const ReplicatedState& state, Index steps_done);
  std::string describe(const ReplicatedState& state, const std::vector<Index>& hashes, int reference);
  double largest_difference(const ReplicatedState& state, const NamedSpan& part, int reference);

  Communicator& comm_;
  SynchronousStrategy& strategy_;
  CommOptions options_;
  bool due_ = false;
  Index repairs_ = 0;
};

}  // namespace lockstep
