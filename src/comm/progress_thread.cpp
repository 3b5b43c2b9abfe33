#include "lockstep/comm/progress_thread.h"

#include <chrono>
#include <utility>

namespace lockstep {

// 1 Gbit/s moves 12 KB meanwhile: far less than fits into the buffers of a socket.
constexpr std::chrono::microseconds kInterval{100};

ProgressThread::ProgressThread(Communicator& comm)
    : comm_(comm.split(0, comm.rank())), thread_([this] { serve(); }) {}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();  // before the communicator goes
}

void ProgressThread::resume() {
  {
    const std::lock_guard lock(mutex_);
    active_ = true;
  }
  wake_.notify_one();
}

void ProgressThread::pause() {
  const std::lock_guard lock(mutex_);
  active_ = false;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ProgressThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || active_; });
    if (stopping_) return;
    try {
      comm_->idle();
    } catch (...) {
      failure_ = std::current_exception();
      active_ = false;
      continue;
    }
    wake_.wait_for(lock, kInterval, [this] { return stopping_ || !active_; });
  }
}

}  // namespace lockstep
