#include "stall_clock.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

constexpr double kLongestInterval = 1;
constexpr double kShortestInterval = 0.01;

double interval_for(double stall_seconds) {
  if (stall_seconds == 0) return kLongestInterval;
  return std::clamp(stall_seconds / 10, kShortestInterval, kLongestInterval);
}

// The limit that comm.stall_seconds = 0 stands for.
double automatic_stall_seconds(double longest_step) {
  constexpr double kLeast = 60;
  constexpr double kSteps = 20;
  return std::max(kLeast, kSteps * longest_step);
}

}  // namespace

StallClock::StallClock(double stall_seconds)
    : stall_seconds_(stall_seconds), interval_(interval_for(stall_seconds)) {}

std::optional<double> StallClock::look(Index step, std::uint64_t marks, double seconds) {
  const double passed =
      std::min(seconds, 2 * interval_);  // more was not spent looking: the job was suspended
  step_seconds_ += passed;
  if (step != step_) {
    if (step_ >= 0) longest_step_ = std::max(longest_step_, step_seconds_);
    step_ = step;
    step_seconds_ = 0;
  }
  stuck_ += passed;
  if (marks == seen_) return {};
  seen_ = marks;
  return std::exchange(stuck_, 0);
}

double StallClock::limit() const {
  return stall_seconds_ > 0 ? stall_seconds_ : automatic_stall_seconds(longest_step_);
}

}  // namespace lockstep
