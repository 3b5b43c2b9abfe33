// Keeps the time of each rank, and finds out how long each waited for the last one. Each rank notes when it
// arrives where ranks exchange something; every few steps all ranks compare these times, on one clock.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/timer.h"
#include "lockstep/base/trace.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/rank_clock.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/bucket_sender.h"
#include "lockstep/train/loop/gradient_step.h"
#include "lockstep/train/loop/rank_times.h"

namespace lockstep {

// The time of training by phase, from a few measured steps to shares over all ranks.

/// Seconds of one step.
struct StepTime {
  double data = 0;  ///< waiting for the loader, or preparing samples on the main thread
  double forward = 0;
  double idle = 0;  ///< waiting for another stage of the model
  double optimizer = 0;
  double total = 0;  ///< time of the whole step
  ExchangeTime exchange;
};

class StepClock {
 public:
  /// Measurements of a step: now and then, since it takes longer, the exchange without backward.
  static Measured measured(Index step);

  /// One step.
  void add(const StepTime& step);
  /// Seconds between two steps in which ranks exchanged something.
  void add_exchange(double seconds) {
    exchange_ += seconds;
    total_ += seconds;
  }
  /// Seconds of exchanges so far that were spent waiting for other ranks.
  void add_waiting(double seconds) { waiting_ += seconds; }
  /// *Collective.* Shares over all ranks since the last call (or the start).
  TimeShares take_shares(Communicator& comm);

 private:
  double data_ = 0;
  double forward_ = 0;
  double idle_ = 0;
  double optimizer_ = 0;
  double total_ = 0;
  double exchange_ = 0;
  double waiting_ = 0;
  double exchange_only_ = 0;  // exchange time in steps where nothing hides it
  Index exchange_only_steps_ = 0;
  double overlapped_ = 0;  // exchange time in all other steps
  Index overlapped_steps_ = 0;
};

/// By rank, whether it hosts replicas.
std::vector<bool> working_ranks(const Plan& plan);

/// Whether metrics.jsonl is to have a line about all ranks after so many steps: the lines of a long run are
/// further and further apart. `before`: the step of the last one.
bool ranks_due(Index before, Index steps_done, Index steps);

class RankLedger {
 public:
  /// *Collective.* `hosts`: by rank; empty: all are on one. `works`: by rank, whether it hosts replicas; only
  /// such ranks can be slow. The communicator must outlive it.
  RankLedger(Communicator& comm, std::vector<std::string> hosts, std::vector<bool> works);

  /// *Local.* A step with the exchanges in it, equally many on all ranks; without any, nobody waited.
  void add(const StepTime& time, std::span<const Arrival> arrivals);
  /// *Local.* An exchange between two steps, in which all ranks take part.
  void add_exchange(double seconds, const Arrival& arrival);
  /// *Local.* Whether settle() is due: on all ranks at the same step.
  bool is_due() const;
  /// *Collective.* Ends a window: seconds that this rank waited in its steps.
  double settle();
  /// *Collective.* Ends a window of steps that ranks have made each at their own pace.
  void settle_asynchronous();

  /// *Local.* After settle(): the seconds of each step of the window, those of the slowest rank.
  const std::vector<double>& step_seconds() const { return step_seconds_; }
  /// *Local.* All windows so far.
  const RankTimes& times() const { return times_; }
  const ClockReading& clock() const { return clock_.reading(); }

 private:
  double waits(std::span<const Index> all);
  Index charge(std::span<const Index> all, std::size_t point);
  void take_window(double waited);
  void add_up(std::span<const double> window);
  void judge();

  Communicator& comm_;
  RankClock clock_;
  std::vector<bool> works_;
  std::vector<std::size_t> host_of_;  // by rank: index into times_.hosts
  RankTimes times_;
  // Steps of the window:
  StepTime sum_;
  std::vector<Arrival> arrivals_;
  std::vector<Index> step_nanoseconds_;
  Index exchanged_steps_ = 0;
  Index steps_ = 0;
  std::vector<double> step_seconds_;
  std::vector<double> best_;       // by rank: data and compute of a step in the best window
  std::vector<double> paces_;      // by rank: data and compute of a step in the last window; 0: none
  std::vector<double> all_steps_;  // by rank
  std::vector<Index> mine_;
  std::vector<Index> all_;
};

// The time of one step by phase: each phase is announced to the watchdog, timed and put on the timeline by
// the same call.

class StepTimer {
 public:
  /// Starts in `phase`.
  explicit StepTimer(Phase phase) : phase_(phase) { note_phase(phase); }

  /// Ends the phase under way and starts `phase`; a phase that was there before goes on being summed.
  void enter(Phase phase) {
    spent(phase_) += lap_.lap();
    if (trace_records()) trace();
    phase_ = phase;
    note_phase(phase);
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

  Phase phase_;
  Stopwatch whole_;
  Stopwatch lap_;
  std::int64_t began_ = trace_records() ? trace_clock() : 0;
  std::array<double, kPhaseNames.size()> seconds_{};
};

}  // namespace lockstep
