// The outputs of several chains side by side.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/onnx_words.h"
#include "sum.h"

namespace lockstep {
namespace {

// Joins the last dimension: features of vectors, channels of images.
class Concat final : public Layer, public OnnxWords {
 public:
  Shape declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    Shape out = inputs.front();
    out.dims.back() = 0;
    for (const Shape& shape : inputs) {
      Shape same = inputs.front();
      same.dims.back() = shape.dims.back();
      if (same != shape) {
        throw ConfigError(fmt::format("cannot put {} and {} side by side: all but the last number must agree",
                                      to_string(inputs.front()), to_string(shape)));
      }
      widths_.push_back(shape.dims.back());
      out.dims.back() += shape.dims.back();
    }
    width_ = out.dims.back();
    return out;
  }

  void forward(const ForwardArgs& args) const override {
    Index offset = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      const Scalar* from = args.inputs[i].data();
      for (Scalar* to = args.y.data() + offset; to < args.y.data() + args.y.size(); to += width_) {
        std::copy_n(from, widths_[i], to);
        from += widths_[i];
      }
      offset += widths_[i];
    }
  }

  void backward(const BackwardArgs& args) const override {
    Index offset = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      if (args.dinputs[i] != nullptr) {
        Scalar* to = args.dinputs[i]->data();
        for (const Scalar* from = args.dy.data() + offset; from < args.dy.data() + args.dy.size();
             from += width_) {
          std::copy_n(from, widths_[i], to);
          to += widths_[i];
        }
      }
      offset += widths_[i];
    }
  }

  bool reads_input() const override { return false; }
  Operation operation() const override { return {.name = "concat", .attributes = {}}; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("Concat", layer.inputs, {{"axis", onnx_last_axis(layer.in.front())}});
  }

 private:
  std::vector<Index> widths_;
  Index width_ = 0;
};

}  // namespace

CompositeEntry concat_entry() {
  return {.name = "concat",
          .signature = "concat(layers | layers | ...)",
          .help =
              "several chains on the same input, their outputs side by side (features of vectors, channels "
              "of images); tensors are named by chain, 0.N, 1.N, ...",
          .example = "concat(dense(3) | dense(2) tanh | relu)",
          .example_input = {{5}},
          .build = [](GraphBuilder& graph, const Term& term, Index input, const std::string& path) {
            expect_chains(graph, term, path, 0);
            std::vector<Index> ends;
            for (const std::vector<Term>& chain : term.chains) {
              ends.push_back(graph.add_chain(chain, input, fmt::format("{}.{}", path, ends.size())));
            }
            return graph.add_layer(std::make_unique<Concat>(), ends, path, term.name);
          }};
}

}  // namespace lockstep
