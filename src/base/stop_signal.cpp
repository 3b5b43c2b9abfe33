#include "lockstep/base/stop_signal.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <new>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

std::atomic<bool> blocked = false;
std::atomic<int> noted = 0;

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
  return signals;
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    default:
      return "SIGUSR1";
  }
}

// SIGSTKSZ asks the system: the registers that it saves take 11 KB on CPUs with AMX. The rest is for the
// unwinder.
std::size_t stack_bytes() {
  constexpr std::size_t kHandler = 64 * 1024;
  return static_cast<std::size_t>(SIGSTKSZ) + kHandler;
}

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

// Shells start what they put in the background with SIGINT ignored, and an ignored signal may be lost even if
// it is blocked.
void note_stop_signals() {
  const sigset_t signals = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) std::signal(signal, SIG_DFL);
  blocked = true;
}

std::string stop_signal() {
  if (blocked && noted == 0) {
    const sigset_t signals = stop_signals();
    const timespec at_once{};
    int none = 0;
    if (const int signal = ::sigtimedwait(&signals, nullptr, &at_once); signal > 0) {
      noted.compare_exchange_strong(none, signal);
    }
  }
  const int signal = noted;
  return signal == 0 ? "" : name_of(signal);
}

void throw_if_stopped() {
  const std::string signal = stop_signal();
  if (signal.empty()) return;
  throw Error(fmt::format("stopped by {} before the first step: nothing was learned yet", signal),
              kExitStopped);
}

SignalStack::SignalStack()
    : bytes_(stack_bytes() + page_bytes()),
      memory_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  // A handler that needs more hits this page instead of memory of others.
  ::mprotect(memory_, page_bytes(), PROT_NONE);
  stack_t stack{};
  stack.ss_sp = static_cast<std::byte*>(memory_) + page_bytes();
  stack.ss_size = bytes_ - page_bytes();
  ::sigaltstack(&stack, &before_);
}

// The stack from before comes back: AddressSanitizer gives each thread one, and releases what is there at its
// end.
SignalStack::~SignalStack() {
  ::sigaltstack(&before_, nullptr);
  ::munmap(memory_, bytes_);
}

}  // namespace lockstep
