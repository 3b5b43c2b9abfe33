#include "lockstep/data/dataset.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {

std::string to_string(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kValidation:
      return "validation";
    case Split::kTest:
      return "test";
  }
  return "";
}

namespace {

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
