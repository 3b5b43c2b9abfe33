// The message that a user gets if MPI does not start.
#pragma once

namespace lockstep {

/// While it lives, a process that an MPI library ends from within MPI_Init logs that in a line of ours, and
/// ends with kExitComm.
class InitFailureReport {
 public:
  InitFailureReport();
  ~InitFailureReport();
  InitFailureReport(const InitFailureReport&) = delete;
  InitFailureReport& operator=(const InitFailureReport&) = delete;
};

}  // namespace lockstep
