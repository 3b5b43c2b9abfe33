#include "lockstep/math/moments.h"

#include <algorithm>

namespace lockstep {

void sum_moments(const ConstMatrix& x, std::span<const Scalar> shift, std::span<double> sums) {
  const std::size_t channels = shift.size();
  std::ranges::fill(sums, 0.0);
  double* sum = sums.data() + 1;
  double* square = sum + channels;
  const Scalar* end = x.data() + x.size();
  for (const Scalar* value = x.data(); value < end; value += channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      const double off = static_cast<double>(value[c]) - static_cast<double>(shift[c]);
      sum[c] += off;
      square[c] += off * off;
    }
  }
  sums[0] = static_cast<double>(x.size()) / static_cast<double>(channels);
}

Moments moments_of(std::span<const double> sums, std::span<const Scalar> shift) {
  const std::size_t channels = shift.size();
  Moments moments{std::vector<double>(channels), std::vector<double>(channels)};
  const double count = sums[0];
  if (count == 0) return moments;
  for (std::size_t c = 0; c < channels; ++c) {
    const double off = sums[1 + c] / count;
    moments.mean[c] = static_cast<double>(shift[c]) + off;
    const double variance = sums[1 + channels + c] / count - off * off;
    moments.variance[c] = variance < 0 ? 0 : variance;  // NaN stays NaN
  }
  return moments;
}

void sum_products(const ConstMatrix& x, std::span<const Scalar> shift, const ConstMatrix& dy,
                  std::span<double> sums) {
  const std::size_t channels = shift.size();
  std::ranges::fill(sums, 0.0);
  double* sum = sums.data();
  double* product = sum + channels;
  const Scalar* value = x.data();
  const Scalar* end = dy.data() + dy.size();
  for (const Scalar* d = dy.data(); d < end; d += channels, value += channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      const auto gradient = static_cast<double>(d[c]);
      sum[c] += gradient;
      product[c] += gradient * (static_cast<double>(value[c]) - static_cast<double>(shift[c]));
    }
  }
}

}  // namespace lockstep
