// x times the standard normal distribution function (Hendrycks & Gimpel 2016), in its exact form.
#include <numbers>

#include "elementwise.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct Gelu {
  Scalar value(Scalar x) const { return x * normal_distribution(x); }
  Scalar derivative(Scalar x, Scalar) const { return normal_distribution(x) + x * normal_density(x); }
};

std::string onnx_gelu(OnnxNodes& graph, const OnnxLayer& layer) {
  const std::string& x = layer.inputs.front();
  const std::string scaled = graph.add("Mul", {x, graph.add_number(1 / std::numbers::sqrt2)});
  const std::string twice = graph.add("Add", {graph.add("Erf", {scaled}), graph.add_number(1)});
  return graph.add("Mul", {graph.add("Mul", {x, graph.add_number(0.5)}), twice});
}

}  // namespace

LayerEntry gelu_entry() {
  return {.name = "gelu",
          .signature = "gelu",
          .help = "x * Phi(x), exact (Hendrycks & Gimpel 2016)",
          .example = "gelu",
          .example_input = {{6}},
          .make = [](TermArguments&) { return make_elementwise(Gelu{}, {.name = "gelu"}, onnx_gelu); }};
}

}  // namespace lockstep
