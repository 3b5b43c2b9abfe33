// y = silu(a) b, where a is the first half of the channels and b the other (Shazeer 2020).

#include "layer_parts.h"
#include "lockstep/math/elementary.h"

namespace lockstep {
namespace {

class Swiglu final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    const Shape& in = inputs.front();
    error_if(in.dims.size() != 1, "expected a vector, or a sequence of vectors: put flatten before it");
    error_if(in.size() % 2 != 0, "{} numbers have no two equal halves: give twice what it is to put out",
             in.size());
    half_ = in.size() / 2;
    return {.out = {{half_}}, .flops = 2 * half_};
  }

  void forward(const ForwardArgs& args) const override {
    for (Index row = 0; row < args.y.rows(); ++row) {
      const Scalar* a = args.x().data() + row * 2 * half_;
      const Scalar* b = a + half_;
      Scalar* y = args.y.data() + row * half_;
#pragma GCC ivdep
      for (Index i = 0; i < half_; ++i) y[i] = a[i] * sigmoid(a[i]) * b[i];
    }
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    for (Index row = 0; row < args.dy.rows(); ++row) {
      const Scalar* a = args.x().data() + row * 2 * half_;
      const Scalar* b = a + half_;
      const Scalar* dy = args.dy.data() + row * half_;
      Scalar* da = args.dx()->data() + row * 2 * half_;
      Scalar* db = da + half_;
#pragma GCC ivdep
      for (Index i = 0; i < half_; ++i) {
        const Scalar s = sigmoid(a[i]);
        da[i] = dy[i] * b[i] * s * (1 + a[i] * (1 - s));
        db[i] = dy[i] * a[i] * s;
      }
    }
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string a = onnx_slice(graph, layer.inputs.front(), {0, half_}, 1);
    const std::string gated = graph.add("Mul", {a, graph.add("Sigmoid", {a})});
    return graph.add("Mul", {gated, onnx_slice(graph, layer.inputs.front(), {half_, 2 * half_}, 1)});
  }

 private:
  Index half_ = 0;
};

}  // namespace

LayerEntry swiglu_entry() {
  return {.name = "swiglu",
          .signature = "swiglu",
          .help = "silu(a) * b of the two halves of what comes in, as behind dense(2 * units) (Shazeer 2020)",
          .example = "swiglu",
          .example_input = {{6}},
          .make = [](TermArguments&) { return std::make_unique<Swiglu>(); }};
}

}  // namespace lockstep
