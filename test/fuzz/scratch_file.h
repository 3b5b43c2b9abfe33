// The file that a fuzz target's bytes are read from.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>

namespace lockstep::fuzz {

/// Writes the bytes to a file of this process in memory, anew each time, and returns its path. `ending`: of
/// its name.
inline std::string scratch_file(std::span<const std::byte> bytes, const std::string& ending) {
  const char* directory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  const std::string path = std::string(directory) + "/fuzz-" + std::to_string(getpid()) + ending;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0) std::abort();
  if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  close(file);
  return path;
}

}  // namespace lockstep::fuzz
