// log(1 + e^x)
#include "elementwise.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/layer.h"

namespace lockstep {
namespace {

struct Softplus {
  Scalar value(Scalar x) const { return log_1_plus_exp(x); }
  Scalar derivative(Scalar x, Scalar) const { return sigmoid(x); }
};

}  // namespace

LayerEntry softplus_entry() {
  return {.name = "softplus",
          .signature = "softplus",
          .help = "log(1 + e^x) (Dugas et al. 2001)",
          .example = "softplus",
          .example_input = {{6}},
          .make = [](TermArguments&) {
            return make_elementwise(Softplus{}, {.name = "softplus"}, onnx_operation("Softplus"));
          }};
}

}  // namespace lockstep
