// LOCKSTEP_ERRORS="17 23" sets these errors on. LOCKSTEP_ERRORS_REACHED names a file of a byte for each
// error, which becomes 1 as soon as a process comes to its place. The file is opened and mapped by bare
// system calls, so that layers that tests load under a program count none of it; a mark is one store, which
// signal handlers and threads may make at any time.
#include "lockstep_error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace {

constexpr int kErrors = LOCKSTEP_ERROR_COUNT + 1;
// A state is a sum of these, 0 for most errors of most runs.
constexpr unsigned char kOn = 1;
constexpr unsigned char kUnmarked = 2;

volatile unsigned char* marks = nullptr;

// Before any object of the program is made.
__attribute__((constructor(101))) void read_environment() {
  if (const char* on = std::getenv("LOCKSTEP_ERRORS")) {
    for (char* end = nullptr;; on = end) {
      const long number = std::strtol(on, &end, 10);
      if (end == on) break;
      if (number > 0 && number < kErrors) lockstep_error_states[number] = kOn;
    }
  }
  const char* reached = std::getenv("LOCKSTEP_ERRORS_REACHED");
  const long file = reached == nullptr ? -1 : ::syscall(SYS_openat, AT_FDCWD, reached, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  const long memory = ::syscall(SYS_mmap, nullptr, kErrors, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::syscall(SYS_close, file);
  if (memory == -1) return;
  marks = reinterpret_cast<volatile unsigned char*>(memory);
  for (int i = 0; i < kErrors; ++i) lockstep_error_states[i] |= kUnmarked;
}

}  // namespace

unsigned char lockstep_error_states[kErrors];

bool lockstep_error_is_on(int number) noexcept {
  unsigned char& state = lockstep_error_states[number];
  if ((state & kUnmarked) != 0) {
    marks[number] = 1;
    state &= kOn;
  }
  return (state & kOn) != 0;
}
