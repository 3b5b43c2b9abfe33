// Brings features to the scale that training likes: (x - mean) / std with constants from the config.
#pragma once

#include <span>
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

  /// Changes nothing.
  bool is_identity() const { return identity_; }
  /// The number that is subtracted, and the factor on the rest: one number for all features, or one for each.
  std::span<const Scalar> mean() const { return mean_; }
  std::span<const Scalar> scale() const { return scale_; }

 private:
  bool identity_ = false;
  std::vector<Scalar> mean_;
  std::vector<Scalar> scale_;
};

}  // namespace lockstep
