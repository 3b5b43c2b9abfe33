#include "mpi_check.h"

#include <fmt/format.h>
#include <mpi.h>

#include <string>

#include "lockstep/base/errors.h"

namespace lockstep {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  int error_class = 0;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &error_class);
  throw CommError(fmt::format("{} failed (class {}): {}", call, error_class,
                              std::string(text, static_cast<std::size_t>(length))));
}

}  // namespace lockstep
