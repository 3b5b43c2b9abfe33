// Convolution of an image: each output channel sums its taps over a window of the input channels of its
// group. In bf16 the image, the weights and dy are rounded, and nothing else.
#include <fmt/format.h>

#include "arguments.h"
#include "image_window.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/math/convolution.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "scratch.h"

namespace lockstep {
namespace {

class Conv2d final : public Layer {
 public:
  explicit Conv2d(TermArguments& arguments)
      : channels_(arguments.take_index("channels", 1)),
        window_{.size = arguments.take_index("size", 1), .stride = arguments.take_index("stride", 1, 1)},
        dilation_(arguments.take_word("dilation", "1")),
        groups_(arguments.take_word("groups", "1")),
        has_bias_(arguments.take_flag("bias", true)),
        init_(take_initialiser(arguments)) {
    window_.padding = arguments.take_word("padding", "valid");
  }

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    window_.dilation = whole_number("dilation", dilation_, 1, "");
    shape_ = convolution(place_windows(window_, inputs.front()));
    precision_ = params.precision();
    const Index taps = window_.size * window_.size;
    weight_ = params.declare(
        {.name = "weight",
         .shape = {{channels_, shape_.in_channels / shape_.groups, window_.size, window_.size}},
         .initialiser = init_.value_or(params.default_initialiser()),
         .fan_in = shape_.fan_in(),
         .fan_out = channels_ / shape_.groups * taps});
    if (has_bias_) bias_ = params.declare({.name = "bias", .shape = {{channels_}}, .decays = false});
    return {{shape_.out_height(), shape_.out_width(), channels_}};
  }

  void forward(const ForwardArgs& args) const override {
    if (precision_ == Precision::kBf16) {
      return convolution_forward(shape_, rounded_input(args.x()), operand(args.rounded, args.version),
                                 part(args.weights, bias_), args.y);
    }
    convolution_forward(shape_, args.x(), operand(args.weights, args.version), part(args.weights, bias_),
                        args.y);
  }

  void backward(const BackwardArgs& args) const override {
    if (precision_ == Precision::kBf16) return backward_in_bf16(args);
    convolution_backward_weights(
        shape_, args.x(), args.dy,
        {.weights = part(args.gradient, weight_), .bias = part(args.gradient, bias_), .write = args.write});
    args.on_ready(weight_.begin);
    if (args.dx() != nullptr) {
      convolution_backward_data(shape_, args.dy, operand(args.weights, args.version), *args.dx());
    }
  }

  std::string name() const override { return "conv2d"; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const Window& vertical = shape_.vertical;
    const Window& horizontal = shape_.horizontal;
    return graph.add("Conv", joined_names(layer.inputs, layer.tensors),
                     {{"strides", std::vector<Index>{vertical.stride, horizontal.stride}},
                      {"dilations", std::vector<Index>{vertical.dilation, horizontal.dilation}},
                      {"group", shape_.groups},
                      {"pads", onnx_padding(vertical, horizontal)}});
  }
  Index flops() const override { return shape_.flops(); }
  WeightUse weight_use() const override {
    return {.rounded = precision_ == Precision::kBf16 ? weight_ : Range{}, .arranged = weight_};
  }

 private:
  // Its weights in the arena.
  template <class Number>
  ConvolutionWeights<Number> operand(std::span<const Number> arena, std::uint64_t version) const {
    return {.values = part(arena, weight_), .offset = weight_.begin, .version = version};
  }

  void backward_in_bf16(const BackwardArgs& args) const {
    const Bf16Matrix dy = rounded_output_gradient(args.dy);
    convolution_backward_weights(shape_, rounded_input(args.x()), dy, part(args.gradient, weight_),
                                 args.write);
    const ConstMatrix dy_pixels(args.dy.data(), args.dy.size() / channels_, channels_);
    sum_rows(dy_pixels, part(args.gradient, bias_), args.write);
    args.on_ready(weight_.begin);
    if (args.dx() != nullptr) {
      convolution_backward_data(shape_, dy, operand(args.rounded, args.version), *args.dx());
    }
  }

  ConvolutionShape convolution(const ImageWindows& windows) const {
    const Index in = windows.image.channels;
    const Index groups = groups_ == "depthwise" ? in : whole_number("groups", groups_, 1, "depthwise");
    if (in % groups != 0 || channels_ % groups != 0) {
      throw ConfigError(
          fmt::format("{} groups must divide both the {} input channels and the {} output channels", groups,
                      in, channels_));
    }
    return {.in_height = windows.image.height,
            .in_width = windows.image.width,
            .in_channels = in,
            .out_channels = channels_,
            .vertical = windows.vertical,
            .horizontal = windows.horizontal,
            .groups = groups};
  }

  Index channels_;
  WindowArguments window_;
  std::string dilation_;
  std::string groups_;
  bool has_bias_;
  std::optional<Initialiser> init_;
  ConvolutionShape shape_;
  Precision precision_ = Precision::kFp32;
  Range weight_;
  Range bias_;  // stays empty without one
};

}  // namespace

LayerEntry conv2d_entry() {
  return {
      .name = "conv2d",
      .signature =
          "conv2d(channels, size, stride=1, padding=valid, dilation=1, groups=1, bias=true, init=WORD)",
      .help =
          "convolution of an image with windows of size x size pixels; padding: valid (none), same (the "
          "output has ceil(input / stride) pixels a side, as in TensorFlow) or a number of pixels on each "
          "side; groups: a number, or depthwise (as many as input channels); init as for dense",
      .example = "conv2d(4, 3, stride=2, padding=same, groups=2)",
      .example_input = {{5, 4, 2}},
      .make = [](TermArguments& arguments) { return std::make_unique<Conv2d>(arguments); }};
}

}  // namespace lockstep
