#include "lockstep/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

// Three decimals of a table are enough, and so is half precision.
constexpr double kProbabilitySumError = 2e-3;

std::optional<BadTarget> find_bad_probability(std::span<const Scalar> targets) {
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Scalar target = targets[i];
    if (!(target >= 0 && target <= 1)) {
      return BadTarget{static_cast<Index>(i), fmt::format("label {}", target),
                       "a probability from 0 to 1, for one of several columns of labels"};
    }
    sum += static_cast<double>(target);
  }
  if (std::abs(sum - 1) <= kProbabilitySumError) return std::nullopt;
  return BadTarget{-1, fmt::format("labels that add up to {:.6g}", sum),
                   fmt::format("the probabilities of the {} classes, which add up to 1", targets.size())};
}

void raise_to(std::atomic<Index>& largest, Index value) {
  Index seen = largest.load(std::memory_order_relaxed);
  while (value > seen && !largest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

bool TargetRule::allows(Scalar target) const {
  if (classes > 0) {
    const bool allowed = target >= 0 && target < static_cast<Scalar>(classes) && target == std::floor(target);
    if (allowed && largest_class != nullptr) raise_to(*largest_class, static_cast<Index>(target));
    return allowed;
  }
  if (unit_interval) return target >= 0 && target <= 1;
  return std::isfinite(target) && (!non_negative || target >= 0) && (!positive || target > 0);
}

std::optional<BadTarget> TargetRule::find_bad(std::span<const Scalar> targets) const {
  if (anything) return std::nullopt;
  if (classes > 0 && targets.size() > 1 && positions == 0) return find_bad_probability(targets);
  const bool masks = may_miss && targets.size() > 1;
  std::size_t missing = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (masks && std::isnan(targets[i])) {
      ++missing;
    } else if (!allows(targets[i])) {
      const bool from_one = classes > 0 && targets[i] == static_cast<Scalar>(classes);
      const bool ignored = classes > 0 && positions > 0 && targets[i] < 0;
      return BadTarget{
          static_cast<Index>(i), fmt::format("label {}", targets[i]),
          expected() + (from_one  ? fmt::format("; classes count from 0: if those of the file are 1 "
                                                 "to {}, subtract 1",
                                                classes)
                        : ignored ? fmt::format("; if it stands for positions without a label, give "
                                                "train.ignore_label = {}",
                                                targets[i])
                                  : "")};
    }
  }
  if (missing == 0) return std::nullopt;
  if (missing == targets.size()) {
    return BadTarget{-1, "no label", fmt::format("at least one of {}", targets.size())};
  }
  if (any_missing != nullptr) any_missing->store(true, std::memory_order_relaxed);
  return std::nullopt;
}

std::span<const Scalar> TargetRule::counted(std::span<const Scalar> targets, Index length) const {
  if (positions == 0 || lengths.empty()) return targets;
  return targets.first(targets.size() / static_cast<std::size_t>(positions) *
                       static_cast<std::size_t>(at(lengths, length)));
}

Index class_of(std::span<const Scalar> targets) {
  if (targets.size() > 1) return std::ranges::max_element(targets) - targets.begin();
  return static_cast<Index>(std::ceil(targets.front() - Scalar{0.5}));
}

std::string TargetRule::expected() const {
  if (classes > 0) return fmt::format("a class below {}, the number of outputs of the model", classes);
  if (unit_interval) return "a number from 0 to 1, for a loss on yes or no";
  if (positive) {
    return "a number above 0, for train.loss 'gamma' (train.loss 'tweedie' learns zeros, too, and "
           "'mean_squared_error' any numbers)";
  }
  if (non_negative) {
    return "a number of 0 or more, for a loss on counts or amounts (train.loss 'mean_squared_error' learns "
           "any numbers)";
  }
  return "a finite number";
}

}  // namespace lockstep
