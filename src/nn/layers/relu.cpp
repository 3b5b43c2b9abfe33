// max(x, 0)
#include "elementwise.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct Relu {
  Scalar value(Scalar x) const { return x < 0 ? 0 : x; }  // NaN stays NaN
  Scalar slope(Scalar y) const { return value_if(y > 0, 1); }
};

}  // namespace

// The largest of relu's values is relu of the largest, bit for bit, and so are the gradients (where all
// values of a window are below 0, relu lets nothing back); behind the pooling it has a fraction of the
// numbers to go through.
LayerEntry relu_entry() {
  return {.name = "relu",
          .signature = "relu",
          .help = "max(x, 0)",
          .example = "relu",
          .example_input = {{6}},
          .lets_first = "maxpool",
          .make = [](TermArguments&) {
            return make_elementwise(Relu{}, {.name = "relu"}, onnx_operation("Relu"));
          }};
}

}  // namespace lockstep
