// x where x > 0, slope * x elsewhere.
#include "elementwise.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct LeakyRelu {
  Scalar slope;
  Scalar value(Scalar x) const { return x < 0 ? slope * x : x; }
  Scalar derivative(Scalar x, Scalar) const { return x > 0 ? Scalar{1} : slope; }
};

std::string onnx_leaky_relu(OnnxNodes& graph, const OnnxLayer& layer) {
  return graph.add("LeakyRelu", layer.inputs, {{"alpha", layer.operation.attribute("slope")}});
}

}  // namespace

LayerEntry leaky_relu_entry() {
  return {.name = "leaky_relu",
          .signature = "leaky_relu(slope=0.01)",
          .help = "x where x > 0, slope * x elsewhere (Maas et al. 2013)",
          .example = "leaky_relu(0.2)",
          .example_input = {{6}},
          .make = [](TermArguments& arguments) {
            const double slope = arguments.take_number("slope", 0.01);
            return make_elementwise(LeakyRelu{static_cast<Scalar>(slope)},
                                    {.name = "leaky_relu", .attributes = {{"slope", slope}}},
                                    onnx_leaky_relu);
          }};
}

}  // namespace lockstep
