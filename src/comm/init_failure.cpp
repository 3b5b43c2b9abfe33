// An MPI library reports a failure of MPI_Init to nobody: no error handler can be set before it, so it prints
// a text of its own and ends the process with code 1, which elsewhere means a bug in Lockstep. MPICH calls
// exit(), which calls what was registered by atexit(). Open MPI calls _exit(), which calls nothing; but its
// libraries find that function by name, and the program's own definition comes first.
#include "init_failure.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/session.h"

namespace {

std::atomic<bool> initialising = false;

// The code to end with instead.
int report_failure(int code) {
  std::string rank;
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    const auto number = lockstep::environment_number(variable);
    if (number && rank.empty()) rank = fmt::format("rank {}: ", *number);
  }
  lockstep::log_error(
      "{}MPI did not start: {} ended the program within MPI_Init (code {}); its own lines above say why. "
      "Check that the program is started by the mpirun of that MPI, its settings (OMPI_MCA_... in the "
      "environment, --mca), and that TMPDIR and /dev/shm can be written to",
      rank, lockstep::mpi_library(), code);
  return lockstep::kExitComm;
}

void report_exit() {
  if (initialising) ::_exit(EXIT_FAILURE);
}

}  // namespace

extern "C" void _exit(int code) {
  if (initialising.exchange(false)) code = report_failure(code);
  for (;;) ::syscall(SYS_exit_group, code);
}

namespace lockstep {

InitFailureReport::InitFailureReport() {
  std::atexit(report_exit);
  initialising = true;
}

InitFailureReport::~InitFailureReport() {
  initialising = false;
}

}  // namespace lockstep
