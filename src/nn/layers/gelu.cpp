// x times the standard normal distribution function (Hendrycks & Gimpel 2016), in its exact form.
#include "elementwise.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct Gelu {
  Scalar value(Scalar x) const { return x * normal_distribution(x); }
  Scalar derivative(Scalar x, Scalar) const { return normal_distribution(x) + x * normal_density(x); }
};

}  // namespace

LayerEntry gelu_entry() {
  return {.name = "gelu",
          .signature = "gelu",
          .help = "x * Phi(x), exact (Hendrycks & Gimpel 2016)",
          .example = "gelu",
          .example_input = {{6}},
          .make = [](TermArguments&) { return make_elementwise(Gelu{}, {.name = "gelu"}); }};
}

}  // namespace lockstep
