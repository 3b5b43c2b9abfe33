// A trainer under mpiexec that runs while the test goes on: its ranks can be stopped and killed, and what it
// leaves behind is counted.
#pragma once

#include <sys/types.h>

#include "lockstep/base/timer.h"
#include "support/common.h"
#include "support/temporary_directory.h"

namespace lockstep::test {

class RunningJob {
 public:
  /// `before`: see rank_words().
  RunningJob(int ranks, const std::string& arguments, const std::string& before = "");
  /// Ends it where it has not ended.
  ~RunningJob();
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  /// Processes of the ranks that there are now, by rank; 0 for one that has not started or has ended.
  std::vector<pid_t> rank_pids() const;
  /// For one that hangs: what it started must end with it.
  void kill_launcher();
  /// Waits until all ranks are there, for at most ten seconds.
  std::vector<pid_t> started_ranks() const;
  /// Whether `text` gets into standard output or errors, within so many seconds.
  bool says(const std::string& text, double seconds) const;
  /// The exit code, or -1 if it has not ended after so many seconds.
  int wait(double seconds);

  std::string output() const;
  std::string errors() const;
  /// Processes that were started by it and are still there, after a second of grace.
  int processes_left() const;
  /// Files in /dev/shm that it made and nobody uses.
  std::vector<std::string> memory_left() const;

 private:
  std::vector<pid_t> members() const;

  TemporaryDirectory directory_;
  int ranks_;
  std::string mark_;  // in the environment of all of its processes
  std::set<std::string> memory_before_;
  pid_t launcher_ = -1;
  int exit_code_ = -1;
};

}  // namespace lockstep::test
