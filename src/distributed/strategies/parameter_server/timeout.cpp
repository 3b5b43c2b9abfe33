#include "timeout.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "lockstep/base/errors.h"

namespace lockstep {

void Timeout::give_up(const std::string& whom, double waited) {
  throw CommError(
      fmt::format("no sign of life from {} for {:.0f} s: it is dead, stopped or much slower than the "
                  "others; look at its host, or raise distribute.timeout_seconds",
                  whom, waited));
}

void Timeout::wait(const std::function<bool()>& ready, const std::function<std::string()>& whom) const {
  constexpr double kLongestLook = 0.1;  // a longer one was not spent looking
  Stopwatch look;
  double waited = 0;
  while (!ready()) {
    waited += std::min(look.lap(), kLongestLook);
    if (waited > seconds_) give_up(whom(), waited);
    nap_after(waited);
  }
}

void Timeout::wait(Request& request, int rank) const {
  wait([&] { return request.test(); }, [rank] { return fmt::format("rank {}", rank); });
}

void nap_after(double waited) {
  constexpr double kEagerSeconds = 200e-6;
  constexpr std::chrono::microseconds kNap(50);
  if (waited < kEagerSeconds) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace lockstep
