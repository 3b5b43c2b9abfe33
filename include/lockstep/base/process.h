// A process and its system: environment variables, signals, memory.
#pragma once

#include <array>
#include <csignal>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

// Environment variables are input like any other: they may be missing, empty, garbage, or left over from
// another job.

/// The value of a variable as it can be shown in a message: bytes that are not printable ASCII are '?', and a
/// long value is cut. None if the variable is not set.
std::optional<std::string> environment_text(const char* name);

/// The value of a variable that holds a whole number from 0 to 1,000,000,000; none if it is not set, or is
/// anything else.
std::optional<Index> environment_number(const char* name);

/// The number that an MPI launcher has given this process; none if it was started without one.
std::optional<Index> launched_rank();

/// The name of this machine.
std::string host_name();

// The wish of a signal that the process should come to an orderly end. No handler takes it: that would run in
// the middle of a product, and oneDNN's kernels keep data below the stack pointer, where a handler puts its
// own. The signals are blocked in all threads, so the kernel keeps them until somebody asks; who works for
// long asks now and then.

/// As long as it lives SIGTERM, SIGINT and SIGUSR1 do not end the process, but are kept until stop_signal()
/// is asked. To be made before other threads are, MPI's too: only then are the signals blocked in these as
/// well. One at a time. Its end, in the same thread, leaves all as it was: signals that have come are
/// forgotten.
class StopSignals : NoCopy {
 public:
  StopSignals();
  ~StopSignals();

 private:
  sigset_t mask_before_{};
  std::array<struct sigaction, 3> actions_before_{};
};

/// The name of the first such signal that was found (of several at once, the lowest number); "" if there was
/// none. Any thread may ask.
std::string stop_signal();

/// Errors: Error with exit code kExitStopped if there was such a signal. For work that is lost without harm.
void throw_if_stopped();

// How much memory a process can have at most, and what is said when it does not get what it asks for.

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
