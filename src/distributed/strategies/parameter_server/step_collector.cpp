#include "step_collector.h"

#include <algorithm>

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

}  // namespace lockstep
