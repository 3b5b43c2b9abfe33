// Hyperbolic tangent.
#include "elementwise.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct Tanh {
  Scalar value(Scalar x) const { return hyperbolic_tangent(x); }
  Scalar slope(Scalar y) const { return 1 - y * y; }
};

}  // namespace

LayerEntry tanh_entry() {
  return {.name = "tanh",
          .signature = "tanh",
          .help = "hyperbolic tangent",
          .example = "tanh",
          .example_input = {{6}},
          .make = [](TermArguments&) {
            return make_elementwise(Tanh{}, {.name = "tanh"}, onnx_operation("Tanh"));
          }};
}

}  // namespace lockstep
