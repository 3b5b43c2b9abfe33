#include "lockstep/comm/session.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/checked_communicator.h"
#include "mpi_communicator.h"

// An MPI library reports a failure of MPI_Init to nobody: no error handler can be set before it, so it prints
// a text of its own and ends the process with code 1, which elsewhere means a bug in Lockstep. MPICH calls
// exit(), which calls what was registered by atexit(). Open MPI calls _exit(), which calls nothing; but its
// libraries find that function by name, and the program's own definition comes first.
namespace {

std::atomic<bool> initialising = false;
// Known before MPI_Init, which gives a number to a process that was started alone, too.
const std::optional<lockstep::Index> launched = lockstep::launched_rank();

// The code to end with instead.
int report_failure(int code) {
  const std::string rank = launched ? fmt::format("rank {}: ", *launched) : "";
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
namespace {

// While it lives, a process that the MPI library ends logs that in a line of ours, and ends with kExitComm.
class InitFailureReport : NoCopy {
 public:
  InitFailureReport() {
    std::atexit(report_exit);
    initialising = true;
  }
  ~InitFailureReport() { initialising = false; }
};

// While it lives, a wish to stop ends the process: MPI looks for none, and may wait for ever for a daemon, or
// for a rank that does not come. Nothing is lost before the first step.
class StopWatch {
 public:
  StopWatch() = default;

 private:
  static void watch(const std::stop_token& started) {
    constexpr std::chrono::milliseconds kBetween{50};
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, started, kBetween, [] { return false; }) && !started.stop_requested()) {
      const std::string signal = stop_signal();
      if (signal.empty()) continue;
      initialising = false;
      log_error("stopped by {} while MPI was starting: nothing was learned yet", signal);
      ::_exit(kExitStopped);
    }
  }

  std::jthread thread_{watch};
};

// Open MPI spins while it waits, and yields only where it knows of too few cores: its slots are what a host
// file says. A rank that spins keeps the core from the one that it waits for. Beside other programs it has to
// spin: to yield would cost a slice of their time at each wait.
void yield_where_ranks_share_cores() {
  const auto ranks = environment_number("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (ranks && *ranks > ::sysconf(_SC_NPROCESSORS_ONLN)) ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

// The log puts the numbers of other ranks before their lines, but none before those of rank 0.
void report(const Communicator& comm, const std::string& message) {
  log_error("{}{}", comm.rank() == 0 ? "rank 0: " : "", message);
}

}  // namespace

// MPI is finalised on the orderly way out only: after an error the job is aborted instead.
int run_in_session(Communicator& comm, const std::function<int(Communicator&)>& body) {
  try {
    return body(comm);
  } catch (const AgreedError& error) {
    if (comm.rank() == 0) log_error("{}", error.what());
    return error.exit_code();
  } catch (const Error& error) {
    report(comm, error.what());
    comm.abort(error.exit_code());
    return error.exit_code();
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) {
      report(comm, describe_out_of_memory(error) + "; `trainer plan` shows what a rank needs");
      comm.abort(kExitConfig);
      return kExitConfig;
    }
    report(comm, fmt::format("unexpected failure: {}", error.what()));
    comm.abort(kExitInternal);
    return kExitInternal;
  }
}

int run_session(const std::function<int(Communicator&)>& body, ThreadLevel level) {
  const int wanted = level == ThreadLevel::kFunneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE;
  int provided = 0;
  {
    yield_where_ranks_share_cores();
    const InitFailureReport report_failure;
    const StopWatch stop_watch;
    if (MPI_Init_thread(nullptr, nullptr, wanted, &provided) != MPI_SUCCESS) {
      throw CommError(
          "MPI_Init_thread failed; was the program started with the mpirun of the MPI it was built with?");
    }
  }
  int result = 0;
  {
    MPI_Comm own = MPI_COMM_NULL;  // so that our messages never match another library's
    check(MPI_Comm_dup(MPI_COMM_WORLD, &own), "MPI_Comm_dup");
    MpiCommunicator mpi(own);
    if constexpr (kChecksCollectives) {
      CheckedCommunicator checked(mpi);
      result = run_in_session(checked, body);
    } else {
      result = run_in_session(mpi, body);
    }
  }
  MPI_Finalize();
  return result;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

}  // namespace lockstep
