// Hands each bucket to the strategy as soon as every thread has its gradient, while backward goes on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/dist/local_gradients.h"
#include "lockstep/dist/strategy.h"

namespace lockstep {

/// Seconds of one step inside the exchange, and of them the wait for the slowest rank (measured on some steps
/// only).
struct ExchangeTime {
  double exchange = 0;
  std::optional<double> waiting;
};

class BucketSender {
 public:
  BucketSender(Communicator& comm, const Plan& plan, Strategy& strategy, LocalGradients& gradients);

  /// Main thread. With `measure_waiting` the ranks wait for each other before the last bucket leaves and
  /// before each meeting, and the time until all are there is the wait.
  void begin_step(bool measure_waiting);
  /// Any thread: its gradients are final from this place of the arena on. Buckets that begin before the place
  /// `first` wait: all ranks are to send them after something else that they do together.
  void final_from(Index thread, Index place, Index first = 0);
  /// Main thread, all threads at rest: does something that all ranks do together in the middle of a step, and
  /// counts its time as exchange, and the time until all have arrived as waiting where that is measured.
  void meet(const std::function<void()>& together);
  /// Main thread, all threads at rest: sends what is complete from the place `first` on.
  void send_ready(Index first);

  const ExchangeTime& time() const { return time_; }

 private:
  void wait_for_all();

  Communicator& comm_;
  const Plan& plan_;
  Strategy& strategy_;
  LocalGradients& gradients_;
  std::vector<std::atomic<Index>> final_from_;  // by thread: a place of the arena
  std::size_t sent_ = 0;
  bool measure_waiting_ = false;
  ExchangeTime time_;
};

}  // namespace lockstep
