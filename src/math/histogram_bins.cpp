#include "lockstep/math/histogram_bins.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lockstep {
namespace {

constexpr int kSmallestExponent = -40;
constexpr int kLargestExponent = 20;
constexpr Index kBinsOfASign = 2 * (kLargestExponent - kSmallestExponent);
static_assert(kHistogramBins == 2 * kBinsOfASign + 1);

// From 0 on, of a number of at least 2^kSmallestExponent: the exponent and the first bit behind the point.
Index bin_of_magnitude(Scalar magnitude) {
  constexpr Index kBias = 127;
  const auto bits = static_cast<Index>(std::bit_cast<std::uint32_t>(magnitude) >> 22U);
  return std::min(bits - 2 * (kBias + kSmallestExponent), kBinsOfASign - 1);
}

// The upper end of a bin of magnitudes.
double magnitude_limit(Index bin) {
  const auto exponent = static_cast<int>(bin / 2) + kSmallestExponent;
  return std::ldexp(bin % 2 == 0 ? 1.5 : 2.0, exponent);
}

}  // namespace

Index histogram_bin(Scalar value) {
  const Scalar magnitude = std::abs(value);
  if (!(magnitude >= std::ldexp(Scalar{1}, kSmallestExponent))) return kBinsOfASign;
  const Index bin = bin_of_magnitude(magnitude);
  return value < 0 ? kBinsOfASign - 1 - bin : kBinsOfASign + 1 + bin;
}

double histogram_limit(Index bin) {
  if (bin >= kBinsOfASign) {
    return bin == kBinsOfASign ? std::ldexp(1.0, kSmallestExponent) : magnitude_limit(bin - kBinsOfASign - 1);
  }
  const Index below = kBinsOfASign - 2 - bin;
  return below < 0 ? -std::ldexp(1.0, kSmallestExponent) : -magnitude_limit(below);
}

}  // namespace lockstep
