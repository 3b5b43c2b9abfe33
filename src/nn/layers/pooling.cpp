// The mean of each window, channel by channel.
#include <fmt/format.h>

#include <limits>

#include "image_window.h"
#include "lockstep/base/errors.h"
#include "lockstep/math/pooling.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

// size, stride (default: size) and padding.
WindowArguments take_pooling(TermArguments& arguments) {
  const Index size = arguments.take_index("size", 1);
  return {.size = size,
          .stride = arguments.take_index("stride", 1, size),
          .padding = arguments.take_word("padding", "valid")};
}

PoolingShape pooling_shape(const ImageWindows& windows) {
  return {.in_height = windows.image.height,
          .in_width = windows.image.width,
          .channels = windows.image.channels,
          .vertical = windows.vertical,
          .horizontal = windows.horizontal};
}

// The output shape of a pooling of `in`.
Shape pooled(const Shape& in, const PoolingShape& pooling) {
  Shape out = in;
  out.dims[0] = pooling.out_height();
  out.dims[1] = pooling.out_width();
  return out;
}

std::vector<OnnxAttribute> onnx_pooling(const PoolingShape& shape) {
  return {{"kernel_shape", std::vector<Index>{shape.vertical.size, shape.horizontal.size}},
          {"strides", std::vector<Index>{shape.vertical.stride, shape.horizontal.stride}},
          {"pads", onnx_padding(shape.vertical, shape.horizontal)}};
}

class AvgPool final : public Layer {
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
  std::string name() const override { return "avgpool"; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    std::vector<OnnxAttribute> attributes = onnx_pooling(shape_);
    attributes.emplace_back("count_include_pad", Index{0});
    return graph.add("AveragePool", layer.inputs, attributes);
  }
  Index flops() const override { return shape_.out_size() * shape_.vertical.size * shape_.horizontal.size; }

 private:
  WindowArguments window_;
  PoolingShape shape_;
};

// The largest value of each window, channel by channel.

// Winners are kept in the memory of the cache, one at the position of each scalar.
static_assert(sizeof(std::int32_t) == sizeof(Scalar) && alignof(std::int32_t) == alignof(Scalar));

class MaxPool final : public Layer {
 public:
  explicit MaxPool(TermArguments& arguments) : window_(take_pooling(arguments)) {}

  Shape declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    if (inputs.front().size() > std::numeric_limits<std::int32_t>::max()) {
      throw ConfigError(fmt::format("an image of more than {} numbers is too large to pool",
                                    std::numeric_limits<std::int32_t>::max()));
    }
    shape_ = pooling_shape(place_windows(window_, inputs.front()));
    return pooled(inputs.front(), shape_);
  }

  void forward(const ForwardArgs& args) const override {
    max_pool_forward(shape_, args.x(), args.y,
                     {reinterpret_cast<std::int32_t*>(args.cache.data()), args.cache.size()});
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    max_pool_backward(shape_, args.dy,
                      {reinterpret_cast<const std::int32_t*>(args.cache.data()), args.cache.size()},
                      *args.dx());
  }

  bool reads_input() const override { return false; }
  std::string name() const override { return "maxpool"; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("MaxPool", layer.inputs, onnx_pooling(shape_));
  }
  Index cache_size() const override { return shape_.out_size(); }
  Index flops() const override { return shape_.out_size() * shape_.vertical.size * shape_.horizontal.size; }

 private:
  WindowArguments window_;
  PoolingShape shape_;
};

// The mean of each channel of an image.

class GlobalAvgPool final : public Layer {
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
  std::string name() const override { return "global_avgpool"; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("Flatten", {graph.add("GlobalAveragePool", layer.inputs)}, {{"axis", Index{1}}});
  }
  Index flops() const override { return shape_.in_size(); }

 private:
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

LayerEntry maxpool_entry() {
  return {.name = "maxpool",
          .signature = "maxpool(size, stride=size, padding=valid)",
          .help =
              "the largest value of each window of size x size pixels; padding (valid, same or a number of "
              "pixels on each side) never wins",
          .example = "maxpool(3, 2, padding=1)",
          .example_input = {{5, 4, 2}},
          .make = [](TermArguments& arguments) { return std::make_unique<MaxPool>(arguments); }};
}

LayerEntry global_avgpool_entry() {
  return {.name = "global_avgpool",
          .signature = "global_avgpool",
          .help = "the mean of each channel of an image, as a vector (Lin et al. 2013)",
          .example = "global_avgpool",
          .example_input = {{3, 2, 4}},
          .make = [](TermArguments&) { return std::make_unique<GlobalAvgPool>(); }};
}

}  // namespace lockstep
