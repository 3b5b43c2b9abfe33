#include "patience.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "lockstep/base/errors.h"

namespace lockstep {

// Most answers come at once; who waits longer leaves the core to others.
void Patience::wait(const std::function<bool()>& ready, const std::function<std::string()>& whom) const {
  constexpr double kEagerSeconds = 200e-6;
  constexpr std::chrono::microseconds kNap(50);
  const Stopwatch waiting;
  while (!ready()) {
    const double waited = waiting.seconds();
    if (waited < kEagerSeconds) {
      std::this_thread::yield();
      continue;
    }
    if (waited > seconds_) {
      throw CommError(
          fmt::format("no sign of life from {} for {:.0f} s: it is dead, stopped or much slower than the "
                      "others; look at its log, or raise distribute.timeout_seconds",
                      whom(), waited));
    }
    std::this_thread::sleep_for(kNap);
  }
}

void Patience::wait(Request& request, int rank) const {
  wait([&] { return request.test(); }, [rank] { return fmt::format("rank {}", rank); });
}

}  // namespace lockstep
