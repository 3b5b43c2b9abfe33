// A helper thread that lets messages make progress while the rank computes. For ranks with a core to spare:
// MPI moves the bytes of a message under way only inside its own calls.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "lockstep/comm/communicator.h"

namespace lockstep {

class ProgressThread : NoCopy {
 public:
  /// *Collective, blocking.* It sleeps until resume(). Requires `comm.takes_threads()`.
  explicit ProgressThread(Communicator& comm);
  ~ProgressThread();

  /// From now on it calls in at short intervals; other calls go on beside it.
  void resume();
  /// It sleeps again, and is not inside a call any more. Throws again the error that it caught.
  void pause();

 private:
  void serve();

  std::unique_ptr<Communicator> comm_;  // a communicator of its own, on which nothing is ever sent
  std::mutex mutex_;                    // held during a call
  std::condition_variable wake_;
  bool active_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace lockstep
