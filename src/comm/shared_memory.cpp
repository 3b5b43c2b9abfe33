#include "shared_memory.h"

#include <mpi.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include "mpi_communicator.h"

namespace lockstep {
namespace {

// A text among the control variables of the MPI library; `otherwise` where it has no such variable.
std::string control_variable(const char* name, const std::string& otherwise) {
  // Open MPI 4.1 takes the level that is asked for here for that of all of MPI.
  int level = MPI_THREAD_SINGLE;
  check(MPI_Query_thread(&level), "MPI_Query_thread");
  int provided = MPI_THREAD_SINGLE;
  check(MPI_T_init_thread(level, &provided), "MPI_T_init_thread");
  std::string value = otherwise;
  int index = 0;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS) {
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    int length = 0;
    check(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &length), "MPI_T_cvar_handle_alloc");
    value.assign(static_cast<std::size_t>(length), '\0');
    check(MPI_T_cvar_read(handle, value.data()), "MPI_T_cvar_read");
    value.resize(value.find('\0'));
    check(MPI_T_cvar_handle_free(&handle), "MPI_T_cvar_handle_free");
  }
  check(MPI_T_finalize(), "MPI_T_finalize");
  return value;
}

}  // namespace

std::string shared_memory_directory() {
  static const std::string directory = control_variable("osc_sm_backing_directory", "/dev/shm");
  return directory;
}

Index free_bytes(const std::string& directory) {
  struct statvfs found {};
  if (statvfs(directory.c_str(), &found) != 0) return std::numeric_limits<Index>::max();
  return static_cast<Index>(found.f_bavail * found.f_frsize);
}

bool claim_pages(std::span<std::byte> memory) {
  if (memory.empty()) return true;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = first / page * page;
  return madvise(reinterpret_cast<void*>(begin), first + memory.size() - begin, MADV_POPULATE_WRITE) == 0 ||
         errno == EINVAL;
}

}  // namespace lockstep
