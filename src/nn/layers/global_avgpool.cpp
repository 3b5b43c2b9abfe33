// The mean of each channel of an image.
#include "lockstep/base/errors.h"
#include "lockstep/math/pooling.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

class GlobalAvgPool final : public Layer, public OnnxWords {
 public:
  Shape declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    const std::optional<ImageShape> image = as_image(inputs.front());
    if (!image) throw ConfigError("expected an image, height x width or height x width x channels");
    shape_ = {.in_height = image->height,
              .in_width = image->width,
              .channels = image->channels,
              .vertical = {.size = image->height},
              .horizontal = {.size = image->width}};
    return {{image->channels}};
  }

  void forward(const ForwardArgs& args) const override { average_pool_forward(shape_, args.x(), args.y); }
  void backward(const BackwardArgs& args) const override {
    if (args.dx() != nullptr) average_pool_backward(shape_, args.dy, *args.dx());
  }

  bool reads_input() const override { return false; }
  Operation operation() const override { return {.name = "global_avgpool"}; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("Flatten", {graph.add("GlobalAveragePool", layer.inputs)}, {{"axis", Index{1}}});
  }
  Index flops() const override { return shape_.in_size(); }

 private:
  PoolingShape shape_;
};

}  // namespace

LayerEntry global_avgpool_entry() {
  return {.name = "global_avgpool",
          .signature = "global_avgpool",
          .help = "the mean of each channel of an image, as a vector (Lin et al. 2013)",
          .example = "global_avgpool",
          .example_input = {{3, 2, 4}},
          .make = [](TermArguments&) { return std::make_unique<GlobalAvgPool>(); }};
}

}  // namespace lockstep
