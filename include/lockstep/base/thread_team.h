// A fixed number of threads that run the same function together: the caller is thread 0. Where each has a
// core of its own, who waits for another looks for it for some 50 us before it sleeps: to wake a thread takes
// longer than the runs of a small step are apart.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// Cores that this process may use; all of the machine if the system does not report them.
int cores_at_hand();

class ThreadTeam : NoCopy {
 public:
  explicit ThreadTeam(int threads);
  ~ThreadTeam();

  int size() const { return static_cast<int>(others_.size()) + 1; }

  /// Runs work(0) here and work(1..size-1) on the other threads. *Blocking* until all are done; then the
  /// first exception, in order of thread numbers, is thrown again.
  void run(const std::function<void(int)>& work);
  /// run() over a range: each thread gets a part of it, a multiple of kAlignment behind its begin, if any.
  void run_parts(Range range, const std::function<void(Range)>& work);

 private:
  void serve(int thread);
  void run_one(int thread);
  template <class Condition>
  bool spin_until(const Condition& condition) const;

  const bool spins_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<long> generation_ = 0;
  std::atomic<int> running_ = 0;
  std::atomic<bool> stopping_ = false;
  std::vector<std::exception_ptr> failures_;
  std::vector<std::jthread> others_;
};

}  // namespace lockstep
