// The time of one step by phase: each phase is announced to the watchdog, timed and put on the timeline by
// the same call.
#pragma once

#include <array>

#include "lockstep/base/timer.h"
#include "lockstep/base/trace.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

class StepTimer {
 public:
  /// Starts in `phase`.
  StepTimer(Communicator& comm, Phase phase) : comm_(comm), phase_(phase) { comm_.note_phase(phase); }

  /// Ends the phase under way and starts `phase`; a phase that was there before goes on being summed.
  void enter(Phase phase) {
    spent(phase_) += lap_.lap();
    if (trace_records()) trace();
    phase_ = phase;
    comm_.note_phase(phase);
  }
  /// Seconds in `phase` up to the last enter().
  double seconds(Phase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }
  /// Seconds since the start, up to now.
  double total() const { return whole_.seconds(); }

 private:
  // The phases in which nothing else is recorded.
  void trace() {
    const std::int64_t now = trace_clock();
    if (phase_ == Phase::kData) trace_event(TraceKind::kData, began_, now);
    if (phase_ == Phase::kOptimizer) trace_event(TraceKind::kOptimizer, began_, now);
    began_ = now;
  }
  double& spent(Phase phase) { return seconds_[static_cast<std::size_t>(phase)]; }

  Communicator& comm_;
  Phase phase_;
  Stopwatch whole_;
  Stopwatch lap_;
  std::int64_t began_ = trace_records() ? trace_clock() : 0;
  std::array<double, kPhaseNames.size()> seconds_{};
};

}  // namespace lockstep
