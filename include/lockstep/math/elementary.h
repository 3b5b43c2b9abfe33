// Exponential and logarithm in plain arithmetic: a loop over them is vectorised, and a value has the same
// bits wherever it stands in the loop, on any alignment and with any C library. NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

#include "lockstep/base/types.h"

namespace lockstep {

/// e^x for x <= 0, to 2 units in the last place; 0 below -87 (where it would be denormal).
/// Method and polynomial: Cephes expf (Moshier).
inline Scalar exp_nonpositive(Scalar x) {
  // Adding 1.5 * 2^23 leaves the nearest whole number in the low bits of the sum.
  constexpr Scalar kRounder = 12582912;
  const Scalar rounded = x * Scalar{1.44269504088896341F} + kRounder;
  const Scalar power = rounded - kRounder;
  const Scalar r = x - power * Scalar{0.693359375F} + power * Scalar{2.12194440e-4F};
  Scalar p = 1.9875691500e-4F;
  p = p * r + Scalar{1.3981999507e-3F};
  p = p * r + Scalar{8.3334519073e-3F};
  p = p * r + Scalar{4.1665795894e-2F};
  p = p * r + Scalar{1.6666665459e-1F};
  p = p * r + Scalar{5.0000001201e-1F};
  const Scalar y = p * (r * r) + r + 1;
  const auto scale = std::bit_cast<Scalar>((std::bit_cast<std::uint32_t>(rounded) + 127) << 23);
  return x < -87 ? 0 : y * scale;
}

/// log(1 + x) for 0 <= x <= 1, to 3 units in the last place, as 2 artanh(x / (2 + x)).
inline Scalar log_1_plus(Scalar x) {
  const Scalar t = x / (2 + x);
  const Scalar t2 = t * t;
  Scalar p = 1.F / 15;
  p = p * t2 + 1.F / 13;
  p = p * t2 + 1.F / 11;
  p = p * t2 + 1.F / 9;
  p = p * t2 + 1.F / 7;
  p = p * t2 + 1.F / 5;
  p = p * t2 + 1.F / 3;
  return 2 * (t + t * (t2 * p));
}

}  // namespace lockstep
