// The mean of each window, channel by channel.
#include "image_window.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

class AvgPool final : public Layer, public OnnxWords {
 public:
  explicit AvgPool(TermArguments& arguments) : window_(take_pooling(arguments)) {}

  Shape declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    shape_ = pooling_shape(place_windows(window_, inputs.front()));
    return pooled(inputs.front(), shape_);
  }

  void forward(const ForwardArgs& args) const override { average_pool_forward(shape_, args.x(), args.y); }
  void backward(const BackwardArgs& args) const override {
    if (args.dx() != nullptr) average_pool_backward(shape_, args.dy, *args.dx());
  }

  bool reads_input() const override { return false; }
  Operation operation() const override {
    return {.name = "avgpool", .attributes = pooling_attributes(shape_)};
  }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    std::vector<OnnxAttribute> attributes = onnx_pooling(layer);
    attributes.emplace_back("count_include_pad", Index{0});
    return graph.add("AveragePool", layer.inputs, attributes);
  }
  Index flops() const override { return shape_.out_size() * shape_.vertical.size * shape_.horizontal.size; }

 private:
  WindowArguments window_;
  PoolingShape shape_;
};

}  // namespace

LayerEntry avgpool_entry() {
  return {.name = "avgpool",
          .signature = "avgpool(size, stride=size, padding=valid)",
          .help =
              "the mean of each window of size x size pixels; padding (valid, same or a number of pixels on "
              "each side) does not count (PyTorch: count_include_pad=False)",
          .example = "avgpool(3, 2, padding=1)",
          .example_input = {{5, 4, 2}},
          .make = [](TermArguments& arguments) { return std::make_unique<AvgPool>(arguments); }};
}

}  // namespace lockstep
