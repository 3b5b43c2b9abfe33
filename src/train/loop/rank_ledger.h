// Keeps the time of each rank, and finds out how long each waited for the last one. Each rank notes when it
// arrives where ranks exchange something; every few steps all ranks compare these times, on one clock.
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bucket_sender.h"
#include "lockstep/base/timer.h"
#include "lockstep/base/trace.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/rank_clock.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/loop/observer.h"

namespace lockstep {

/// The time of one step, or sums over several and over ranks: seconds, but for the numbers of steps.
struct TimeSums {
  double data = 0;  ///< waiting for the loader, or preparing samples on the main thread
  double forward = 0;
  double idle = 0;  ///< waiting for another stage of the model
  double optimizer = 0;
  double total = 0;
  double exchange = 0;  ///< with the waiting in it
  double waiting = 0;   ///< for other ranks
  double alone = 0;     ///< exchange without waiting, in steps where nothing hides it
  double alone_steps = 0;
  double beside = 0;  ///< exchange in all other steps
  double beside_steps = 0;

  static constexpr std::size_t kColumns = 11;

  /// That of a step.
  void add_exchange(const ExchangeTime& time);
  void add(const TimeSums& other);
  double steps() const { return alone_steps + beside_steps; }
  double compute() const { return total - data - idle - exchange; }
  TimeShares shares() const;
};
static_assert(sizeof(TimeSums) == TimeSums::kColumns * sizeof(double));

/// Measurements of a step: now and then, since it takes longer, the exchange without backward.
Measured measured_in(Index step);

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
  void add(const TimeSums& time, std::span<const Arrival> arrivals);
  /// *Local.* An exchange between two steps, in which all ranks take part.
  void add_exchange(double seconds, const Arrival& arrival);
  /// *Local.* Whether settle() is due: on all ranks at the same step.
  bool is_due() const;
  /// *Collective.* Ends a window.
  void settle();
  /// *Collective.* Ends a window of steps that ranks have made each at their own own.
  void settle_asynchronous() { take_window(sums_.waiting); }

  /// *Local.* After settle(): the seconds of each step of the window, those of the slowest rank.
  const std::vector<double>& step_seconds() const { return step_seconds_; }
  /// *Local.* All windows so far.
  const RankTimes& times() const { return times_; }
  /// *Local.* Shares of the time of all ranks together, in all windows so far.
  TimeShares shares() const { return whole_.shares(); }
  /// *Local.* As shares(), in the windows since the last call.
  TimeShares take_shares() { return std::exchange(recent_, {}).shares(); }
  const ClockReading& clock() const { return clock_.reading(); }

 private:
  double waits(std::span<const Index> all);
  Index charge(std::span<const Index> all, std::size_t point);
  void take_window(double waited);
  void add_up(std::span<const TimeSums> window);
  void judge();
  void read_load();

  // Data and compute of a step.
  struct StepTimes {
    std::size_t host = 0;  // index into times_.hosts
    bool works = false;
    double best = 0;   // in the best window; 0: none so far
    double last = 0;   // in the last window; 0: none
    double steps = 0;  // of all windows
  };

  Communicator& comm_;
  RankClock clock_;
  std::vector<StepTimes> step_times_;  // by rank
  RankTimes times_;
  TimeSums whole_;   // of all ranks
  TimeSums recent_;  // as whole_, since take_shares()
  // Steps of the window:
  TimeSums sums_;
  std::vector<Arrival> arrivals_;
  std::vector<Index> step_nanoseconds_;
  Index exchanged_steps_ = 0;
  Index loads_ = 0;  // readings of the load
  Stopwatch since_load_;
  std::vector<double> step_seconds_;
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
