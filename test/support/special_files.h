// Devices and FIFOs in a test's own directory: the machine's own ones are never touched.
#pragma once

#include "support/common.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace lockstep::test {

inline void make_fifo(const std::string& path) {
  if (::mkfifo(path.c_str(), 0666) != 0) throw std::runtime_error("cannot make a FIFO " + path);
}

enum class Device : unsigned { kNull = 3, kFull = 7 };  // minor numbers of Linux's memory devices

/// False where a device cannot be made or opened: only root can, and not on every file system.
inline bool make_device(const std::string& path, Device device) {
  if (::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, static_cast<unsigned>(device))) != 0) return false;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  ::close(descriptor);
  return true;
}

inline bool is_device(const std::string& path) {
  return std::filesystem::is_character_file(std::filesystem::symlink_status(path));
}

}  // namespace lockstep::test
