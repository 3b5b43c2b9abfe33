#include "admission_policy.h"

#include <algorithm>

namespace lockstep {

AdmissionPolicy::AdmissionPolicy(const DistOptions& options, Index workers)
    : options_(options),
      pushed_(static_cast<std::size_t>(workers), 0),
      last_step_(static_cast<std::size_t>(workers), -1) {}

void AdmissionPolicy::begin_round(Index until) {
  until_ = until;
  cut_short_ = false;
}

Permit AdmissionPolicy::ask(std::size_t worker, Index steps_done) const {
  if (stopped_ || cut_short_) return Permit::kStop;
  if (together()) {
    if (steps_done >= until_) return Permit::kStop;
    return last_step_[worker] < steps_done ? Permit::kGo : Permit::kWait;
  }
  if (granted_ >= until_) return Permit::kStop;
  // Ho et al. 2013, "More effective distributed ML via a stale synchronous parallel parameter server".
  const bool held = options_.mode == ServerMode::kBounded && ahead(worker) > options_.staleness;
  return held ? Permit::kWait : Permit::kGo;
}

Index AdmissionPolicy::go(std::size_t worker, Index steps_done) {
  last_step_[worker] = together() ? steps_done : granted_;
  ++granted_;
  return last_step_[worker];
}

Index AdmissionPolicy::slowest() const {
  return options_.mode == ServerMode::kBounded ? *std::ranges::min_element(pushed_) : 0;
}

Index AdmissionPolicy::ahead(std::size_t worker) const {
  return pushed_[worker] - *std::ranges::min_element(pushed_);
}

}  // namespace lockstep
