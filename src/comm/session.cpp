#include "lockstep/comm/session.h"

#include <fmt/format.h>
#include <mpi.h>

#include <exception>

#include "init_failure.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/memory_limit.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/checked_communicator.h"
#include "mpi_communicator.h"

namespace lockstep {
namespace {

// The log names other ranks by itself.
void report(const Communicator& comm, const std::string& message) {
  log_error("{}{}", comm.rank() == 0 ? "rank 0: " : "", message);
}

// MPI is finalised on the orderly way out only: after an error the job is aborted instead.
int run_body(Communicator& comm, const std::function<int(Communicator&)>& body) {
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

}  // namespace

int run_session(const std::function<int(Communicator&)>& body, ThreadLevel level) {
  const int wanted = level == ThreadLevel::kFunneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE;
  int provided = 0;
  {
    const InitFailureReport report_failure;
    if (MPI_Init_thread(nullptr, nullptr, wanted, &provided) != MPI_SUCCESS) {
      throw CommError(
          "MPI_Init_thread failed; was the program started with the mpirun of the MPI it was built with?");
    }
  }
  int result = 0;
  {
    MpiCommunicator mpi = MpiCommunicator::duplicate_of(MPI_COMM_WORLD);
    if constexpr (kChecksCollectives) {
      CheckedCommunicator checked(mpi);
      result = run_body(checked, body);
    } else {
      result = run_body(mpi, body);
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
