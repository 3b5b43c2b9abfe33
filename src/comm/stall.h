// The ranks of a host know of each other what each does (Activity). Their watchers learn from it how long a
// rank is stuck, and report who waits for whom. A rank *gets on* whenever it begins or ends a call that waits
// for others, or begins a phase or a step; it is *stuck* for as long as it has not got on.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/comm/watchdog.h"

namespace lockstep {

/// The calls that wait for other ranks.
enum class Call : int { kNone, kBarrier, kBroadcast, kAllReduce, kAllGather, kSplit, kWindow, kWait, kIdle };

/// The doings of a rank. They lie in memory that the ranks of a host share. The thread that is watched writes
/// them, with relaxed stores and without reading a clock; watchers read at any moment.
struct alignas(64) Activity {
  int rank = -1;  ///< in the whole job
  int pid = 0;
  std::atomic<double> stuck = 0;         ///< seconds, as of its watcher's last tick
  std::atomic<std::uint64_t> marks = 0;  ///< rises whenever the rank gets on
  std::atomic<Phase> phase = Phase::kStart;
  std::atomic<Index> step = -1;
  /// The last bucket that was handed to the exchange; -1: none in this step. In the phases of a stage the
  /// micro-batch.
  std::atomic<Index> bucket = -1;
  std::atomic<Index> stage = -1;  ///< of the model, that this rank runs; -1: the model is not divided
  std::atomic<Call> call = Call::kNone;
  std::atomic<Index> number = 0;        ///< of the call, among those of its communicator; 0: it has none
  std::atomic<Index> communicator = 0;  ///< 0: all ranks; else as they were made
  Index communicators = 0;              ///< made so far, but for that of all ranks
};

/// That of the rank, on the thread that is watched. Null on all others: what these wait for (see
/// ProgressThread) is not what the rank waits for.
inline constinit thread_local Activity* own_activity = nullptr;

/// While it lives this thread is inside that call, even if that throws.
class Waiting : NoCopy {
 public:
  Waiting(Call call, Index number, Index communicator);
  ~Waiting();
};

/// This thread is idle until it gets on; called again and again while nothing happens.
void note_idle(Index communicator);

/// The ranks that others wait for: those that are in no call, stopped or gone; where all wait, those that are
/// at another call than most, and where there is no majority, all. Empty: all wait in the same call.
std::vector<int> missing_ranks(std::span<const Activity> ranks);

/// Several lines, for the log: who waits for whom, and a line for each of `ranks`, those of this host.
/// `stuck`: for how long the rank that asks is; `other_hosts`: whether the job has any.
std::string describe_stall(std::span<const Activity> ranks, double stuck, bool other_hosts);

/// For how long a rank is stuck, from looks at it now and then. Time is what a watcher has seen go by, tick
/// by tick: a job that was suspended as a whole is not stuck when it wakes.
class StallClock {
 public:
  /// `stall_seconds`: as in CommOptions; 0: many times the longest step, but a minute at least.
  explicit StallClock(double stall_seconds);

  /// Seconds between two ticks.
  double interval() const { return interval_; }
  /// The rank is at `step` (-1: at none yet) and has got on `marks` times, so many seconds after the last
  /// tick. If it has got on since then: how long it had not.
  std::optional<double> tick(Index step, std::uint64_t marks, double seconds);
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
