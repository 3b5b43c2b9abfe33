#include "lockstep/data/normaliser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {
namespace {

void check_length(const char* key, std::size_t found, Index features) {
  if (found == 1 || static_cast<Index>(found) == features) return;
  throw ConfigError(
      fmt::format("{} has {} numbers, expected 1 or {} (one for each feature)", key, found, features));
}

}  // namespace

Normaliser::Normaliser(const std::vector<double>& mean, const std::vector<double>& std, Index features) {
  check_length("data.mean", mean.size(), features);
  check_length("data.std", std.size(), features);
  for (const double value : mean) {
    if (!std::isfinite(value))
      throw ConfigError(fmt::format("data.mean holds {}, expected finite numbers", value));
  }
  for (const double value : std) {
    if (value > 0 && std::isfinite(value)) continue;
    throw ConfigError(
        fmt::format("data.std holds {}, expected numbers above 0: use 1 for a feature that never "
                    "changes",
                    value));
  }
  const std::size_t length = std::max(mean.size(), std.size());
  for (std::size_t i = 0; i < length; ++i) {
    mean_.push_back(static_cast<Scalar>(mean[mean.size() == 1 ? 0 : i]));
    scale_.push_back(static_cast<Scalar>(1 / std[std.size() == 1 ? 0 : i]));
  }
  identity_ = std::ranges::all_of(mean_, [](Scalar value) { return value == 0; }) &&
              std::ranges::all_of(scale_, [](Scalar value) { return value == 1; });
}

void Normaliser::apply(Matrix& x) const {
  if (identity_) return;
  if (mean_.size() == 1) {
    as_array(x) = (as_array(x) - mean_[0]) * scale_[0];
    return;
  }
  const ConstArray mean = as_array(std::span(mean_));
  const ConstArray scale = as_array(std::span(scale_));
  for (Index row = 0; row < x.rows(); ++row) {
    Array features(x.data() + row * x.cols(), x.cols());
    features = (features - mean) * scale;
  }
}

}  // namespace lockstep
