// Exponential, logarithm, sine and the like in plain arithmetic: a loop over them is vectorised, and a value
// has the same bits wherever it stands in the loop, on any alignment and with any C library. NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "lockstep/base/types.h"

namespace lockstep {

/// a * b + c, rounded once: in a polynomial half the instructions of a product and a sum.
inline Scalar multiply_add(Scalar a, Scalar b, Scalar c) {
  return std::fma(a, b, c);
}

/// e^x = scale * (1 + rest): scale is a power of two, rest lies between -0.3 and 0.42.
struct SplitExponential {
  Scalar scale;
  Scalar rest;
};

/// For -87 <= x <= 0. Method and polynomial: Cephes expf (Moshier).
inline SplitExponential split_exponential(Scalar x) {
  // Adding 1.5 * 2^23 leaves the nearest whole number in the low bits of the sum.
  constexpr Scalar kRounder = 12582912;
  const Scalar rounded = multiply_add(x, 1.44269504088896341F, kRounder);
  const Scalar power = rounded - kRounder;
  const Scalar r = multiply_add(power, 2.12194440e-4F, x - power * Scalar{0.693359375F});
  Scalar p = 1.9875691500e-4F;
  p = multiply_add(p, r, 1.3981999507e-3F);
  p = multiply_add(p, r, 8.3334519073e-3F);
  p = multiply_add(p, r, 4.1665795894e-2F);
  p = multiply_add(p, r, 1.6666665459e-1F);
  p = multiply_add(p, r, 5.0000001201e-1F);
  const auto scale = std::bit_cast<Scalar>((std::bit_cast<std::uint32_t>(rounded) + 127) << 23);
  return {.scale = scale, .rest = multiply_add(p, r * r, r)};
}

/// e^x for x <= 0, to 2 units in the last place; 0 below -87 (where it would be denormal).
inline Scalar exp_nonpositive(Scalar x) {
  const SplitExponential e = split_exponential(x);
  return x < -87 ? 0 : (e.rest + 1) * e.scale;
}

/// e^x - 1 for x <= 0, to 3 units in the last place also near zero.
inline Scalar exp_minus_1_nonpositive(Scalar x) {
  const SplitExponential e = split_exponential(x);
  return x < -87 ? -1 : e.rest * e.scale + (e.scale - 1);
}

/// e^x, to 3 units in the last place; 0 below -87 and infinite above 87.
inline Scalar exponential(Scalar x) {
  const Scalar e = exp_nonpositive(x > 0 ? -x : x);
  return x > 0 ? 1 / e : e;
}

/// 2 artanh t = log((1 + t) / (1 - t)) for -1/3 <= t <= 1/3.
inline Scalar twice_artanh(Scalar t) {
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

/// log(1 + x) for 0 <= x <= 1, to 3 units in the last place, as 2 artanh(x / (2 + x)).
inline Scalar log_1_plus(Scalar x) {
  return twice_artanh(x / (2 + x));
}

/// log x for finite x > 0 that is not denormal, to 3 units in the last place.
inline Scalar logarithm(Scalar x) {
  // x = 2^power * f with f between sqrt(1/2), whose bits these are, and sqrt(2).
  constexpr std::uint32_t kRootOfHalf = 0x3f3504f3;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::int32_t power = static_cast<std::int32_t>(bits - kRootOfHalf) >> 23;
  const auto f = std::bit_cast<Scalar>(bits - (static_cast<std::uint32_t>(power) << 23));
  const auto p = static_cast<Scalar>(power);
  const Scalar result =
      p * Scalar{0.693359375F} - (p * Scalar{2.12194440e-4F} - twice_artanh((f - 1) / (f + 1)));
  return x > 0 ? result : x - x;
}

/// base^exponent for 0 <= base <= 1 and exponent >= 0; 0^0 is 1.
inline Scalar power_of_share(Scalar base, Scalar exponent) {
  const Scalar result = exp_nonpositive(exponent * logarithm(base));
  return base > 0 ? result : (exponent > 0 ? base : 1 + base);
}

/// log(1 + e^x), in a form that neither overflows nor cancels.
inline Scalar log_1_plus_exp(Scalar x) {
  return (x > 0 ? x : 0) + log_1_plus(exp_nonpositive(x > 0 ? -x : x));
}

/// `value` or 0, by its bits: a choice would become a branch, which is not vectorised.
inline Scalar value_if(bool keep, Scalar value) {
  return std::bit_cast<Scalar>(std::bit_cast<std::uint32_t>(value) & -static_cast<std::uint32_t>(keep));
}

/// 1 / (1 + e^-x), to 3 units in the last place. NaN stays NaN.
inline Scalar sigmoid(Scalar x) {
  const Scalar e = exp_nonpositive(x < 0 ? x : -x);
  return (x < 0 ? e : 1) / (1 + e);
}

/// tanh x, to 3 units in the last place: near zero the polynomial of Cephes tanhf (Moshier), elsewhere by
/// e^-2|x|.
inline Scalar hyperbolic_tangent(Scalar x) {
  const Scalar magnitude = x < 0 ? -x : x;
  const Scalar e = exp_nonpositive(-2 * magnitude);
  const Scalar far = (1 - e) / (1 + e);
  const Scalar square = x * x;
  Scalar p = -5.70498872745e-3F;
  p = p * square + Scalar{2.06390887954e-2F};
  p = p * square - Scalar{5.37397155531e-2F};
  p = p * square + Scalar{1.33314422036e-1F};
  p = p * square - Scalar{3.33332819422e-1F};
  const Scalar near = x + x * square * p;
  return magnitude < Scalar{0.625F} ? near : (x < 0 ? -far : far);
}

/// Sine and cosine of an angle.
struct SineCosine {
  Scalar sine;
  Scalar cosine;
};

/// For an angle in turns, of which one is 2 pi; to 2e-7 for |turns| < 2^20, as what is left of whole quarters
/// of a turn is exact. Polynomials: Cephes sinf and cosf (Moshier).
inline SineCosine sine_cosine_of_turns(Scalar turns) {
  // Adding 1.5 * 2^23 leaves the nearest whole number in the low bits of the sum.
  constexpr Scalar kRounder = 12582912;
  const Scalar rounded = 4 * turns + kRounder;
  const std::uint32_t quarter = std::bit_cast<std::uint32_t>(rounded) & 3U;
  const Scalar x = (4 * turns - (rounded - kRounder)) * Scalar{1.57079632679489662F};
  const Scalar square = x * x;
  Scalar s = -1.9515295891e-4F;
  s = s * square + Scalar{8.3321608736e-3F};
  s = s * square - Scalar{1.6666654611e-1F};
  s = x + x * square * s;
  Scalar c = 2.443315711809948e-5F;
  c = c * square - Scalar{1.388731625493765e-3F};
  c = c * square + Scalar{4.166664568298827e-2F};
  c = 1 - square / 2 + square * square * c;
  const Scalar sine = (quarter & 1U) != 0 ? c : s;
  const Scalar cosine = (quarter & 1U) != 0 ? s : c;
  return {.sine = (quarter & 2U) != 0 ? -sine : sine,
          .cosine = quarter == 1 || quarter == 2 ? -cosine : cosine};
}

/// Density of the standard normal distribution.
inline Scalar normal_density(Scalar x) {
  return Scalar{0.39894228040143268F} * exp_nonpositive(Scalar{-0.5F} * x * x);
}

/// Distribution function of the standard normal, to 1.5e-7 (Abramowitz & Stegun 1964, 26.2.17 by way
/// of 7.1.26), from the density there.
inline Scalar normal_distribution_with(Scalar x, Scalar density) {
  const Scalar z = (x < 0 ? -x : x) * Scalar{0.70710678118654752F};
  const Scalar t = 1 / multiply_add(0.3275911F, z, 1);
  Scalar p = 1.061405429F;
  p = multiply_add(p, t, -1.453152027F);
  p = multiply_add(p, t, 1.421413741F);
  p = multiply_add(p, t, -0.284496736F);
  p = multiply_add(p, t, 0.254829592F);
  const Scalar tail = Scalar{1.2533141373155003F} * p * t * density;  // sqrt(pi / 2)
  return x < 0 ? tail : 1 - tail;
}
/// Likewise, without it.
inline Scalar normal_distribution(Scalar x) {
  return normal_distribution_with(x, normal_density(x));
}

}  // namespace lockstep
