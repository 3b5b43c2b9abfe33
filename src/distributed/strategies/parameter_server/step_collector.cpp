// With backup workers, one step takes the gradients of `needed` of the workers, and the rest arrive too late.
// Every server receives all gradients, each its own slice, in an order of its own. All of them must sum the
// gradients of equal workers, or the slices of the weights would belong to different steps. So the first
// server decides the members of the step, as soon as enough gradients are there, and the others get the
// decision by message.
//
// On each server a step is complete once the members are known and the gradients of all of them are there.
// The sum is taken in order of worker numbers, not of arrival, and each gradient is a mean, which counts with
// the weight of its samples.
#include "step_collector.h"

#include <algorithm>

#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

StepCollector::StepCollector(Index workers, Index needed, Index size)
    : needed_(needed), weights_(static_cast<std::size_t>(workers)) {
  for (Index worker = 0; worker < workers; ++worker) gradients_.emplace_back(size);
}

void StepCollector::add(std::size_t worker, double weight, double lr) {
  weights_[worker] = weight;
  lr_ = lr;
}

std::optional<std::vector<Index>> StepCollector::decide() const {
  std::vector<Index> present;
  for (const std::optional<double>& weight : weights_) present.push_back(weight ? 1 : 0);
  if (std::ranges::count(present, 1) < needed_) return std::nullopt;
  return present;
}

bool StepCollector::complete() const {
  if (members_.empty()) return false;
  for (std::size_t worker = 0; worker < members_.size(); ++worker) {
    if (members_[worker] != 0 && !weights_[worker]) return false;
  }
  return true;
}

UpdateRequest StepCollector::take(std::span<Scalar> sum) {
  UpdateRequest request{.weight = 0, .lr = lr_};
  as_array(sum).setZero();
  for (std::size_t worker = 0; worker < members_.size(); ++worker) {
    if (members_[worker] == 0) continue;
    const double weight = weights_[worker].value();
    request.weight += weight;
    as_array(sum) += static_cast<Scalar>(weight) * as_array(gradients_[worker].span());
  }
  std::ranges::fill(weights_, std::nullopt);
  members_.clear();
  return request;
}

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
