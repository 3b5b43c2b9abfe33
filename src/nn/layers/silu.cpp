// x times its sigmoid, also called swish.
#include "elementwise.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct Silu {
  Scalar value(Scalar x) const { return x * sigmoid(x); }
  Scalar derivative(Scalar x, Scalar) const {
    const Scalar s = sigmoid(x);
    return s * (1 + x * (1 - s));
  }
};

std::string onnx_silu(OnnxNodes& graph, const OnnxLayer& layer) {
  return graph.add("Mul", {layer.inputs.front(), graph.add("Sigmoid", layer.inputs)});
}

}  // namespace

LayerEntry silu_entry() {
  return {.name = "silu",
          .signature = "silu",
          .help = "x / (1 + e^-x) (Elfwing et al. 2017; swish)",
          .example = "silu",
          .example_input = {{6}},
          .make = [](TermArguments&) { return make_elementwise(Silu{}, {.name = "silu"}, onnx_silu); }};
}

}  // namespace lockstep
