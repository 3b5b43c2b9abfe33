#include "step_collector.h"

#include <algorithm>

#include "lockstep/math/kernels.h"

namespace lockstep {

StepCollector::StepCollector(Index workers, Index needed, Index size)
    : needed_(needed), samples_(static_cast<std::size_t>(workers), 0) {
  for (Index worker = 0; worker < workers; ++worker) gradients_.emplace_back(size);
}

void StepCollector::add(std::size_t worker, Index samples, double lr) {
  samples_[worker] = samples;
  lr_ = lr;
}

std::optional<std::vector<Index>> StepCollector::decide() const {
  std::vector<Index> present;
  for (const Index samples : samples_) present.push_back(samples > 0 ? 1 : 0);
  if (std::ranges::count(present, 1) < needed_) return std::nullopt;
  return present;
}

bool StepCollector::complete() const {
  if (members_.empty()) return false;
  for (std::size_t worker = 0; worker < members_.size(); ++worker) {
    if (members_[worker] != 0 && samples_[worker] == 0) return false;
  }
  return true;
}

UpdateRequest StepCollector::take(std::span<Scalar> sum) {
  UpdateRequest request{.samples = 0, .lr = lr_};
  as_array(sum).setZero();
  for (std::size_t worker = 0; worker < members_.size(); ++worker) {
    if (members_[worker] == 0) continue;
    request.samples += samples_[worker];
    as_array(sum) += static_cast<Scalar>(samples_[worker]) * as_array(gradients_[worker].span());
  }
  std::ranges::fill(samples_, 0);
  members_.clear();
  return request;
}

}  // namespace lockstep
