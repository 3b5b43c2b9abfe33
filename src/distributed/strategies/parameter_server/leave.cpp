#include "leave.h"

#include <algorithm>

namespace lockstep {

LeaveRule::LeaveRule(const DistOptions& options, Index workers)
    : options_(options),
      pushed_(static_cast<std::size_t>(workers), 0),
      last_step_(static_cast<std::size_t>(workers), -1) {}

void LeaveRule::begin_stretch(Index until) {
  until_ = until;
  cut_short_ = false;
}

Leave LeaveRule::ask(std::size_t worker, Index steps_done) const {
  if (stopped_ || cut_short_) return Leave::kStop;
  if (together()) {
    if (steps_done >= until_) return Leave::kStop;
    return last_step_[worker] < steps_done ? Leave::kGo : Leave::kWait;
  }
  if (granted_ >= until_) return Leave::kStop;
  // Ho et al. 2013, "More effective distributed ML via a stale synchronous parallel parameter server".
  const bool held = options_.mode == ServerMode::kBounded && ahead(worker) > options_.staleness;
  return held ? Leave::kWait : Leave::kGo;
}

Index LeaveRule::go(std::size_t worker, Index steps_done) {
  last_step_[worker] = together() ? steps_done : granted_;
  ++granted_;
  return last_step_[worker];
}

Index LeaveRule::slowest() const {
  return options_.mode == ServerMode::kBounded ? *std::ranges::min_element(pushed_) : 0;
}

Index LeaveRule::ahead(std::size_t worker) const {
  return pushed_[worker] - *std::ranges::min_element(pushed_);
}

}  // namespace lockstep
