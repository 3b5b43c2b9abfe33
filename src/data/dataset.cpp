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

bool TargetRule::allows(Scalar target) const {
  if (classes > 0) {
    return target >= 0 && target < static_cast<Scalar>(classes) && target == std::floor(target);
  }
  return unit_interval ? target >= 0 && target <= 1 : std::isfinite(target);
}

std::string TargetRule::expected() const {
  if (classes > 0) return fmt::format("a class below {}, the number of outputs of the model", classes);
  return unit_interval ? "a number from 0 to 1, for a loss on yes or no" : "a finite number";
}

}  // namespace lockstep
