#include "lockstep/base/thread_team.h"

namespace lockstep {

ThreadTeam::ThreadTeam(int threads) : failures_(static_cast<std::size_t>(threads)) {
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
    failures_[static_cast<std::size_t>(thread)] = std::current_exception();
  }
}

void ThreadTeam::serve(int thread) {
  long seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
    }
    run_one(thread);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    running_ = size() - 1;
    ++generation_;
    for (std::exception_ptr& failure : failures_) failure = nullptr;
  }
  wake_.notify_all();
  run_one(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return running_ == 0; });
  for (const std::exception_ptr& failure : failures_) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace lockstep
