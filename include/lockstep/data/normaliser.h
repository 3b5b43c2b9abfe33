// Brings features to the scale that training likes: (x - mean) / std with constants from the config.
#pragma once

#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

/// (x - mean) / std, feature by feature or with one constant for all.
class Normaliser {
 public:
  /// Errors: ConfigError if a list has neither 1 nor `features` numbers, or a deviation is not above 0.
  Normaliser(const std::vector<double>& mean, const std::vector<double>& std, Index features);
  void apply(Matrix& x) const;

 private:
  bool identity_ = false;
  std::vector<Scalar> mean_;
  std::vector<Scalar> scale_;
};

}  // namespace lockstep
