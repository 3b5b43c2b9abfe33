// One clock for all ranks: that of rank 0. Each rank knows how far its own steady clock is from it, and
// within which error. Ranks that share the clock of a machine share it exactly; between machines messages to
// and fro tell the distance, and later measurements how the clocks drift.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/base/trace.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

/// The clock of a rank; tests have others.
struct OwnClock {
  std::function<std::int64_t()> now;
  Index identity;  ///< the same on ranks whose clocks are one and the same; never negative
};

/// The steady clock of this machine.
OwnClock steady_clock();

class RankClock {
 public:
  /// *Collective.* `comm` is not kept.
  explicit RankClock(Communicator& comm, OwnClock clock = steady_clock());

  /// *Collective, blocking.* Takes some round trips with one rank of each machine.
  void measure();
  /// *Local.* After measure(): a moment of the own clock, on rank 0's.
  std::int64_t common(std::int64_t own) const;
  /// *Local.* The last measurement.
  const ClockReading& reading() const { return last_; }
  /// *Local.* When it was made, on rank 0's clock: the same number everywhere.
  std::int64_t measured_at() const { return measured_at_; }

 private:
  ClockReading measure_with(int peer);
  void answer();

  OwnClock clock_;
  std::unique_ptr<Communicator> comm_;
  std::vector<int> measuring_;  // by rank: the rank whose reading it takes; 0 has the clock itself
  std::optional<ClockReading> before_;
  ClockReading last_;
  std::int64_t measured_at_ = 0;
};

}  // namespace lockstep
