// 1 / (1 + exp(-x))
#include "elementwise.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct Sigmoid {
  Scalar value(Scalar x) const { return sigmoid(x); }
  Scalar slope(Scalar y) const { return y * (1 - y); }
};

}  // namespace

LayerEntry sigmoid_entry() {
  return {.name = "sigmoid",
          .signature = "sigmoid",
          .help = "1 / (1 + exp(-x))",
          .example = "sigmoid",
          .example_input = {{6}},
          .make = [](TermArguments&) {
            return make_elementwise(Sigmoid{}, {.name = "sigmoid"}, onnx_operation("Sigmoid"));
          }};
}

}  // namespace lockstep
