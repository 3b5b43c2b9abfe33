// Hands each bucket to the strategy as soon as every thread has its gradient, while backward goes on.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/progress_thread.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {

/// Measurements in a step beside the time of the exchange: the exchange without overlap, as nothing leaves
/// before all ranks are through with backward.
enum class Measured { kNothing, kExchangeOnly };

/// Seconds of one step inside the exchange, and of them the wait for other ranks where that is known at once.
struct ExchangeTime {
  double exchange = 0;
  double waiting = 0;
  bool exchange_only = false;  ///< nothing else went on beside it
};

/// A point of a step where no rank goes on before all have come: when this rank came, and when it went on, in
/// nanoseconds of its steady clock.
struct Arrival {
  std::int64_t arrived = 0;
  std::int64_t left = 0;
};

class BucketSender {
 public:
  /// `progress` (may be null) runs while backward goes on and a bucket is under way.
  BucketSender(Communicator& comm, const Plan& plan, Strategy& strategy, LocalGradients& gradients,
               ThreadTeam& team, ProgressThread* progress);

  /// *Collective*, main thread.
  void begin_step(Measured measured);
  /// Any thread: its gradients are final from this offset of the arena on. Buckets that begin before the
  /// offset `first` wait: all ranks are to send them after something else that they do together.
  void ready_from(Index thread, Index offset, Index first = 0);
  /// Main thread, all threads at rest: does something that all ranks do together in the middle of a step, and
  /// counts its time as exchange.
  void sync(const std::function<void()>& together);
  /// Main thread, all threads at rest: sends what is complete from the offset `first` on.
  void send_ready(Index first);
  /// *Collective*, main thread, all threads at rest: sends what has not left, as backward is over.
  void end_step();
  /// Main thread: the exchange of the step is complete.
  void note_end();

  const ExchangeTime& time() const { return time_; }
  /// The points of the step where ranks wait for each other: each sync(), and the last bucket.
  std::span<const Arrival> arrivals() const { return arrivals_; }

 private:
  void wait_for_all();
  // If it is true, threads do better to add up their gradients together after backward.
  bool nothing_to_hide() const { return team_.size() > 1 && (comm_.size() == 1 || !strategy_.overlaps()); }
  void send_from(Index complete, ThreadTeam* team);
  void arrive();
  void note_complete(std::size_t buckets);

  Communicator& comm_;
  const Plan& plan_;
  Strategy& strategy_;
  LocalGradients& gradients_;
  ThreadTeam& team_;
  ProgressThread* progress_thread_;
  std::vector<std::atomic<Index>> ready_from_;  // offset from which gradients are final, by thread
  std::size_t sent_ = 0;
  bool early_ = true;  // buckets leave during backward
  Measured measured_ = Measured::kNothing;
  ExchangeTime time_;
  std::vector<Arrival> arrivals_;
  bool arrived_ = false;                   // where the last bucket leaves
  std::size_t complete_ = 0;               // buckets that are known to be complete
  std::vector<std::int64_t> bucket_left_;  // when each bucket left
};

}  // namespace lockstep
