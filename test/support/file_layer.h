// What libraries share that stand between a trainer and the C library (LD_PRELOAD): the functions behind
// theirs, and the paths of open files.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <string>

namespace lockstep::test {

// As the launchers of Open MPI and MPICH say.
inline std::string rank_of_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* number = std::getenv(name)) return number;
  }
  return "0";
}

inline std::string path_of(int descriptor) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length < 0 ? "" : std::string(path.data(), static_cast<std::size_t>(length));
}

inline std::string path_at(int directory, const char* path) {
  if (directory == AT_FDCWD || path[0] == '/') return path;
  return path_of(directory) + "/" + path;
}

inline mode_t mode_of(int flags, std::va_list& more) {
  return (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
}

template <class Function>
Function* next_function(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace lockstep::test

// The same function of the C library.
#define REAL(name)                                                          \
  ([] {                                                                     \
    static const auto real = lockstep::test::next_function(&::name, #name); \
    return real;                                                            \
  }())
