#include "lockstep/base/stop_signal.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <ctime>

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

}  // namespace lockstep
