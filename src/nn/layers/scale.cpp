// y = weight * x by feature: a first layer that learns how much each feature counts, with a rate of its own.
#include <algorithm>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "scratch.h"

namespace lockstep {
namespace {

class FeatureScale final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const Shape& in = inputs.front();
    size_ = in.size();
    weight_ = params.declare(
        {.name = "weight", .shape = {{size_}}, .decays = false, .initialiser = Initialiser::kOne});
    return {.out = in, .flops = size_};
  }

  void forward(const ForwardArgs& args) const override {
    scale_rows(args.x().data(), part(args.weights, weight_).data(), args.y.rows(), size_, args.y.data());
  }

  void backward(const BackwardArgs& args) const override {
    const std::span<Scalar> gradient = part(args.gradient, weight_);
    if (args.write == Write::kReplace) std::ranges::fill(gradient, Scalar{0});
    add_products(args.dy.data(), args.x().data(), args.dy.rows(), size_, gradient.data());
    if (args.dx() == nullptr) return;
    scale_rows(args.dy.data(), part(args.weights, weight_).data(), args.dy.rows(), size_, args.dx()->data());
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const Shape& in = layer.in.front();
    if (in.dims.size() == 1) return graph.add("Mul", {layer.inputs.front(), layer.tensors.front()});
    std::vector<Index> shape{1};
    shape.insert(shape.end(), in.dims.begin(), in.dims.end());
    const std::string weight = graph.reshape(layer.tensors.front(), shape);
    return graph.add("Mul", {layer.inputs.front(), onnx_ordered(graph, weight, in)});
  }

 private:
  Index size_ = 0;
  Range weight_;
};

}  // namespace

LayerEntry scale_entry() {
  return {
      .name = "scale",
      .signature = "scale",
      .help =
          "y = weight * x by feature, from 1 on: as the first layer it learns how much each feature counts "
          "(Holzmueller et al. 2024), at a rate of its own by train.lr_multiplier",
      .example = "scale",
      .example_input = {{6}},
      .make = [](TermArguments&) { return std::make_unique<FeatureScale>(); }};
}

}  // namespace lockstep
