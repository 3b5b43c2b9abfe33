// The life of MPI in this process, and the promise that no rank waits for a dead one.
#pragma once

#include <functional>
#include <string>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// Which threads of a rank talk to other ranks.
enum class ThreadLevel { kFunneled, kMultiple };

/// Starts MPI (MPI_THREAD_FUNNELED or MPI_THREAD_MULTIPLE; whether MPI provides the latter is known from
/// Communicator::takes_threads()), runs `body` with all ranks and ends MPI. Returns what body returns.
/// Anything that body throws ends the *whole job*: this rank's message is logged as an error and every rank
/// is aborted with the error's exit code.
int run_session(const std::function<int(Communicator&)>& body, ThreadLevel level = ThreadLevel::kFunneled);

/// *Collective.* Runs `body` as run_session() does, in a session that there is.
int run_in_session(Communicator& comm, const std::function<int(Communicator&)>& body);

/// Version text of the MPI library, one line. Needs no session.
std::string mpi_library();

}  // namespace lockstep
