// Shared windows where ranks are MPI processes of one node: MPI-3 shared memory.
#pragma once

#include <mpi.h>

#include <memory>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// *Collective* over `comm`, whose handle is `handle`: Communicator::shared_window.
std::unique_ptr<SharedWindow> make_mpi_window(Communicator& comm, MPI_Comm handle, Index bytes);

}  // namespace lockstep
