// The largest value of each window, channel by channel.
#include <fmt/format.h>

#include <limits>

#include "image_window.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

// Winners are kept in the memory of the cache, one at the position of each scalar.
static_assert(sizeof(std::int32_t) == sizeof(Scalar) && alignof(std::int32_t) == alignof(Scalar));

class MaxPool final : public Layer, public OnnxWords {
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
  Operation operation() const override {
    return {.name = "maxpool", .attributes = pooling_attributes(shape_)};
  }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("MaxPool", layer.inputs, onnx_pooling(layer));
  }
  Index cache_size() const override { return shape_.out_size(); }
  Index flops() const override { return shape_.out_size() * shape_.vertical.size * shape_.horizontal.size; }

 private:
  WindowArguments window_;
  PoolingShape shape_;
};

}  // namespace

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

}  // namespace lockstep
