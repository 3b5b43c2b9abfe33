// x times the standard normal distribution function (Hendrycks & Gimpel 2016), in its exact form.
#include <cmath>

#include "elementwise.h"
#include "entries.h"

namespace lockstep {
namespace {

constexpr Scalar kInverseSqrt2 = 0.70710678118654752F;
constexpr Scalar kInverseSqrt2Pi = 0.39894228040143268F;

struct Gelu {
  // Phi(x) and its density.
  static Scalar distribution(Scalar x) { return Scalar{0.5} * (1 + std::erf(x * kInverseSqrt2)); }
  static Scalar density(Scalar x) { return kInverseSqrt2Pi * std::exp(Scalar{-0.5} * x * x); }

  Scalar value(Scalar x) const { return x * distribution(x); }
  Scalar derivative(Scalar x, Scalar) const { return distribution(x) + x * density(x); }
};

}  // namespace

LayerEntry gelu_entry() {
  return {.name = "gelu",
          .signature = "gelu",
          .help = "x * Phi(x), exact (Hendrycks & Gimpel 2016)",
          .example = "gelu",
          .make = [](LayerArguments&) { return make_elementwise(Gelu{}); }};
}

}  // namespace lockstep
