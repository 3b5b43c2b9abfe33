// Time as a watcher sees it: what it knows of its rank from looks that it takes now and then, without a
// clock.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/base/types.h"

namespace lockstep {

class StallClock {
 public:
  /// `stall_seconds`: as in CommOptions; 0: many times the longest step, but a minute at least.
  explicit StallClock(double stall_seconds);

  /// Seconds between two looks.
  double interval() const { return interval_; }
  /// A look at a rank that is at `step` (-1: at none yet) and has got on `marks` times, so many seconds after
  /// the last look. If it has got on since then: how long it had not.
  std::optional<double> look(Index step, std::uint64_t marks, double seconds);
  /// Seconds since the rank last got on.
  double stuck() const { return stuck_; }
  /// Seconds without getting on that make a stall.
  double limit() const;

 private:
  double stall_seconds_;
  double interval_;
  std::uint64_t seen_ = 0;  // marks
  double stuck_ = 0;
  Index step_ = -1;
  double step_seconds_ = 0;
  double longest_step_ = 0;
};

}  // namespace lockstep
