// The time of one step by phase: each phase is announced to the watchdog and timed by the same call.
#pragma once

#include <array>

#include "lockstep/base/timer.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

class StepTimer {
 public:
  /// Starts in `phase`.
  StepTimer(Communicator& comm, Phase phase) : comm_(comm), phase_(phase) { comm_.note_phase(phase); }

  /// Ends the phase under way and starts `phase`; a phase that was there before goes on being summed.
  void enter(Phase phase) {
    spent(phase_) += lap_.lap();
    phase_ = phase;
    comm_.note_phase(phase);
  }
  /// Seconds in `phase` up to the last enter().
  double seconds(Phase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }
  /// Seconds since the start, up to now.
  double total() const { return whole_.seconds(); }

 private:
  double& spent(Phase phase) { return seconds_[static_cast<std::size_t>(phase)]; }

  Communicator& comm_;
  Phase phase_;
  Stopwatch whole_;
  Stopwatch lap_;
  std::array<double, kPhaseNames.size()> seconds_{};
};

}  // namespace lockstep
