// A sample of any shape becomes one vector.
#include "entries.h"

namespace lockstep {
namespace {

class Flatten final : public Layer {
 public:
  Shape declare(const Shape& in, ParamDeclarer&) override { return {{in.size()}}; }
  void forward(ForwardArgs) const override {}
  void backward(BackwardArgs) const override {}
  bool only_reshapes() const override { return true; }
};

}  // namespace

LayerEntry flatten_entry() {
  return {.name = "flatten",
          .signature = "flatten",
          .help = "a sample of any shape becomes one vector",
          .example = "flatten",
          .make = [](LayerArguments&) { return std::make_unique<Flatten>(); }};
}

}  // namespace lockstep
