#include "lockstep/base/thread_team.h"

#include <sched.h>
#include <unistd.h>

#include "lockstep/base/timer.h"

namespace lockstep {

constexpr double kSpinSeconds = 50e-6;
constexpr int kLooks = 1000;

int cores_at_hand() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

ThreadTeam::ThreadTeam(int threads)
    : spins_(threads <= cores_at_hand()), failures_(static_cast<std::size_t>(threads)) {
  for (int thread = 1; thread < threads; ++thread) {
    others_.emplace_back([this, thread] { serve(thread); });
  }
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
}

void ThreadTeam::run_one(int thread) {
  try {
    (*work_)(thread);
  } catch (...) {
    at(failures_, thread) = std::current_exception();
  }
}

// Cores may be shared with other ranks or programs all the same: they get them in between. To yield takes
// longer than to look.
template <class Condition>
bool ThreadTeam::spin_until(const Condition& condition) const {
  if (condition()) return true;
  if (!spins_) return false;
  const Stopwatch waiting;
  while (waiting.seconds() < kSpinSeconds) {
    for (int look = 0; look < kLooks; ++look) {
      if (condition()) return true;
    }
    std::this_thread::yield();
  }
  return false;
}

void ThreadTeam::serve(int thread) {
  long seen = 0;
  for (;;) {
    const auto called = [&] { return stopping_ || generation_ != seen; };
    if (!spin_until(called)) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, called);
    }
    if (stopping_) return;
    seen = generation_;
    run_one(thread);
    if (--running_ > 0) continue;
    // Under the lock, so that it does not come between the caller's look and its sleep.
    const std::lock_guard lock(mutex_);
    done_.notify_one();
  }
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    running_ = size() - 1;
    for (std::exception_ptr& failure : failures_) failure = nullptr;
    ++generation_;
  }
  wake_.notify_all();
  run_one(0);
  const auto all_done = [&] { return running_ == 0; };
  if (!spin_until(all_done)) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, all_done);
  }
  for (const std::exception_ptr& failure : failures_) {
    if (failure) std::rethrow_exception(failure);
  }
}

void ThreadTeam::run_parts(Range range, const std::function<void(Range)>& work) {
  run([&](int thread) {
    const Range mine = split_evenly(range, size(), thread, kAlignment);
    if (!mine.empty()) work(mine);
  });
}

}  // namespace lockstep
