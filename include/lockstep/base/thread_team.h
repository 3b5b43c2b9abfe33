// A fixed number of threads that run the same function together: the caller is thread 0, the others sleep in
// between.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(others_.size()) + 1; }

  /// Runs work(0) here and work(1..size-1) on the other threads. *Blocking* until all are done; then the
  /// first exception, in order of thread numbers, is thrown again.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int thread);
  void run_one(int thread);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const std::function<void(int)>* work_ = nullptr;
  long generation_ = 0;
  int running_ = 0;
  bool stopping_ = false;
  std::vector<std::exception_ptr> failures_;
  std::vector<std::jthread> others_;
};

}  // namespace lockstep
