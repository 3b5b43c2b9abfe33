// x where x > 0, alpha (e^x - 1) elsewhere.
#include <fmt/format.h>

#include "elementwise.h"
#include "lockstep/base/errors.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct Elu {
  Scalar alpha;
  Scalar value(Scalar x) const {
    const Scalar below = alpha * exp_minus_1_nonpositive(x > 0 ? 0 : x);
    return x > 0 ? x : below;
  }
  // Both sides are computed, so that a loop over them is vectorised.
  Scalar derivative(Scalar x, Scalar y) const {
    const Scalar below = y + alpha;
    return x > 0 ? Scalar{1} : below;
  }
};

std::string onnx_elu(OnnxNodes& graph, const OnnxLayer& layer) {
  return graph.add("Elu", layer.inputs, {{"alpha", layer.operation.attribute("alpha")}});
}

std::unique_ptr<Layer> make(TermArguments& arguments) {
  const double alpha = arguments.take_number("alpha", 1);
  if (!(alpha > 0)) throw ConfigError(fmt::format("alpha must be above 0, found {}", alpha));
  return make_elementwise(Elu{static_cast<Scalar>(alpha)}, {.name = "elu", .attributes = {{"alpha", alpha}}},
                          onnx_elu);
}

}  // namespace

LayerEntry elu_entry() {
  return {.name = "elu",
          .signature = "elu(alpha=1)",
          .help = "x where x > 0, alpha (e^x - 1) elsewhere (Clevert et al. 2015)",
          .example = "elu(0.7)",
          .example_input = {{6}},
          .make = make};
}

}  // namespace lockstep
