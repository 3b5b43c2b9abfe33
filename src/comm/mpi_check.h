// Error codes of MPI calls become CommErrors.
#pragma once

namespace lockstep {

/// Throws a CommError with the name of the call, the class and MPI's text unless `code` is MPI_SUCCESS.
void check(int code, const char* call);

}  // namespace lockstep
