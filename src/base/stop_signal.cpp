#include "lockstep/base/stop_signal.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

std::atomic<int> noted = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not wait");

extern "C" void note(int signal) {
  int none = 0;
  noted.compare_exchange_strong(none, signal);
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

}  // namespace

void note_stop_signals() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaction(signal, &action, nullptr);
}

std::string stop_signal() {
  const int signal = noted.load();
  return signal == 0 ? "" : name_of(signal);
}

void throw_if_stopped() {
  const std::string signal = stop_signal();
  if (signal.empty()) return;
  throw Error(fmt::format("stopped by {} before the first step: nothing was learned yet", signal),
              kExitStopped);
}

}  // namespace lockstep
