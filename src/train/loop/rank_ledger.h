// Keeps the time of each rank, and finds out how long each waited for the last one. Each rank notes when it
// arrives where ranks exchange something; every few steps all ranks compare these times, on one clock.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/rank_clock.h"
#include "lockstep/train/loop/bucket_sender.h"
#include "lockstep/train/loop/rank_times.h"
#include "step_clock.h"

namespace lockstep {

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

}  // namespace lockstep
