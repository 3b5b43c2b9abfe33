// How much memory a process can have at most, and what is said when it does not get what it asks for.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

/// Bytes.
inline constexpr double kGib = 1 << 30;

struct MemoryLimit {
  Index bytes = 0;
  std::string reason;  ///< "the memory and swap space of this machine", "the limit of its control group", ...
  bool of_host = true;  ///< all processes of the host share it; else each has so much
};

/// The smallest of: the machine's memory and swap space, the limits of the control group, and what `ulimit
/// -v` leaves. Memory that others use now counts as if it were free.
MemoryLimit memory_limit();

/// A block of memory that could not be had, with its size.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(Index bytes);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Whether memory was missing: std::bad_alloc, or std::length_error of a container that was to hold more than
/// any memory.
bool is_out_of_memory(const std::exception& error);
/// "out of memory", with the size where it is known.
std::string describe_out_of_memory(const std::exception& error);

}  // namespace lockstep
