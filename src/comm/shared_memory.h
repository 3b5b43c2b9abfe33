// The file system behind shared windows, and pages of it. Such pages are promised at first and given when
// they are touched; where none is left, the touch ends the process with SIGBUS. So we ask before.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

/// The directory in which this MPI library puts shared windows: Open MPI names it (its parameter
/// osc_sm_backing_directory), the others are known to use /dev/shm. The first call takes a fifth of a second.
std::string shared_memory_directory();

/// Bytes that are free in a file system; the largest Index if it does not report them.
Index free_bytes(const std::string& directory);

/// Gives pages to all of `memory`, near the calling thread's processor where the system can choose. False
/// where there are not enough. Linux before 5.14 cannot tell: true.
bool claim_pages(std::span<std::byte> memory);

}  // namespace lockstep
