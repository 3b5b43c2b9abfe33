// Convolution of an image or a sequence: each output channel sums its taps over a window of the input
// channels of its group. In bf16 the input, the weights and dy are rounded, and nothing else.
//
// A window over the last positions that count sees padding behind them: zeros, as the window's own padding.
// So a sample comes to what it would without. dy is 0 beyond the output's length, whatever layers follow.
// What stands behind the longest sample of a batch is not computed: the kernels get the positions before it
// alone.
#include <algorithm>

#include "image_window.h"
#include "layer_parts.h"
#include "lockstep/math/convolution.h"

namespace lockstep {
namespace {

class ConvolutionLayer final : public Layer {
 public:
  ConvolutionLayer(TermArguments& arguments, bool over_time)
      : channels_(arguments.take_index("channels", 1)),
        window_{.size = arguments.take_index(over_time ? "width" : "size", 1),
                .stride = arguments.take_index("stride", 1, 1),
                .over_time = over_time},
        dilation_(arguments.take_word("dilation", "1")),
        groups_(arguments.take_word("groups", "1")),
        has_bias_(arguments.take_flag("bias", true)),
        init_(arguments) {
    window_.padding = arguments.take_word("padding", "valid");
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    window_.dilation = whole_number("dilation", dilation_, 1, "");
    shape_ = convolution(place_windows(window_, inputs.front()));
    precision_ = params.precision();
    const Index taps = shape_.vertical.size * shape_.horizontal.size;
    Shape weight{{channels_, shape_.in_channels / shape_.groups, window_.size, window_.size}};
    if (window_.over_time) weight.dims.pop_back();
    weight_ = params.declare(init_.of(params, {.name = "weight",
                                               .shape = weight,
                                               .fan_in = shape_.fan_in(),
                                               .fan_out = channels_ / shape_.groups * taps}));
    if (has_bias_) bias_ = params.declare({.name = "bias", .shape = {{channels_}}, .decays = false});
    return {
        .out = window_.over_time
                   ? SequenceShape{.positions = shape_.out_width(), .channels = channels_}.shape()
                   : Shape{{shape_.out_height(), shape_.out_width(), channels_}},
        .flops = shape_.flops(),
        .weight_use = {.rounded = precision_ == Precision::kBf16 ? weight_ : Range{}, .arranged = weight_},
        .is_causal = window_.padding == "causal" && window_.stride == 1};
  }

  void forward(const ForwardArgs& args) const override {
    thread_local AlignedBuffer<Scalar> buffer;
    const ConvolutionShape shape = shape_of(args);
    const ConstMatrix x = input(args, shape);
    Matrix y = args.lengths.given() ? matrix_in(buffer, x.rows(), shape.out_size()) : args.y;
    if (precision_ == Precision::kBf16) {
      convolution_forward(shape, rounded_input(x), operand(args.rounded, args.version),
                          part(args.weights, bias_), y);
    } else {
      convolution_forward(shape, x, operand(args.weights, args.version), part(args.weights, bias_), y);
    }
    if (!args.lengths.given()) return;
    std::ranges::fill(args.y.values(), Scalar{0});
    copy_first(y, args.y);
  }

  void backward(const BackwardArgs& args) const override {
    thread_local AlignedBuffer<Scalar> of_dy;
    thread_local AlignedBuffer<Scalar> of_dx;
    const Index samples = args.dy.rows();
    const ConvolutionShape shape = shape_of(args);
    if (!args.lengths.given()) return backward(args, {shape, args.x(), args.dy, args.dx()});
    Matrix dy = matrix_in(of_dy, samples, shape.out_size());
    copy_first(args.dy, dy);
    Matrix* const whole = args.dx();
    Matrix dx = matrix_in(of_dx, whole == nullptr ? 0 : samples, shape.in_size());
    backward(args, {shape, input(args, shape), dy, whole == nullptr ? nullptr : &dx});
    if (whole == nullptr) return;
    copy_first(dx, *whole);
    clear_padding(args.lengths, shape_.in_channels, *whole);
  }

  bool takes_sequences() const override { return true; }  // for conv2d to refuse them
  Index length_of_output(Index length) const override {
    return length == 0 ? 0 : shape_.horizontal.positions(length);
  }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::vector<Window> axes = onnx_axes(shape_, window_);
    std::vector<std::string> inputs = layer.inputs;
    if (window_.over_time) inputs.front() = onnx_swapped(graph, onnx_masked(graph, layer));
    const std::string y = graph.add("Conv", joined_names(inputs, layer.tensors),
                                    {{"strides", onnx_numbers(axes, &Window::stride)},
                                     {"dilations", onnx_numbers(axes, &Window::dilation)},
                                     {"group", shape_.groups},
                                     {"pads", onnx_padding(axes)}});
    return window_.over_time ? onnx_swapped(graph, y) : y;
  }

 private:
  // Its weights in the arena.
  template <class Number>
  ConvolutionWeights<Number> operand(std::span<const Number> arena, std::uint64_t version) const {
    return {.values = part(arena, weight_), .offset = weight_.begin, .version = version};
  }

  // The operands of the kernels: of a batch with padding, the positions up to the longest sample.
  struct Operands {
    const ConvolutionShape& shape;
    const ConstMatrix& x;
    const ConstMatrix& dy;
    Matrix* dx;  // null if nobody wants it
  };

  // Kernels keep something for each shape, so the positions are one of eight numbers.
  ConvolutionShape shape_of(const PassArgs& args) const {
    ConvolutionShape shape = shape_;
    if (!args.lengths.given()) return shape;
    const Index grain = divide_up(shape_.in_width, 8);
    Index longest = 1;
    for (Index row = 0; row < args.x().rows(); ++row) longest = std::max(longest, args.lengths[row]);
    shape.in_width = 0;
    while (shape.in_width < longest || shape.out_width() < 1)
      shape.in_width = std::min(shape.in_width + grain, shape_.in_width);
    return shape;
  }

  // Zeros in place of padding.
  ConstMatrix input(const PassArgs& args, const ConvolutionShape& shape) const {
    if (!args.lengths.given()) return args.x();
    thread_local AlignedBuffer<Scalar> buffer;
    Matrix x = matrix_in(buffer, args.x().rows(), shape.in_size());
    copy_first(args.x(), x);
    clear_padding(args.lengths, shape_.in_channels, x);
    return x;
  }

  void backward(const BackwardArgs& args, const Operands& of) const {
    precision_ == Precision::kBf16 ? backward_in_bf16(args, of) : backward_in_fp32(args, of);
  }

  void backward_in_fp32(const BackwardArgs& args, const Operands& of) const {
    convolution_backward_weights(
        of.shape, of.x, of.dy,
        {.weights = part(args.gradient, weight_), .bias = part(args.gradient, bias_), .write = args.write});
    args.on_ready(weight_.begin);
    if (of.dx != nullptr) {
      convolution_backward_data(of.shape, of.dy, operand(args.weights, args.version), *of.dx);
    }
  }

  void backward_in_bf16(const BackwardArgs& args, const Operands& of) const {
    const Bf16Matrix dy = rounded_output_gradient(of.dy);
    convolution_backward_weights(of.shape, rounded_input(of.x), dy, part(args.gradient, weight_), args.write);
    const ConstMatrix dy_pixels(of.dy.data(), of.dy.size() / channels_, channels_);
    sum_rows(dy_pixels, part(args.gradient, bias_), args.write);
    args.on_ready(weight_.begin);
    if (of.dx != nullptr) {
      convolution_backward_data(of.shape, dy, operand(args.rounded, args.version), *of.dx);
    }
  }

  ConvolutionShape convolution(const ImageWindows& windows) const {
    const Index in = windows.image.channels;
    const Index groups = groups_ == "depthwise" ? in : whole_number("groups", groups_, 1, "depthwise");
    error_if(in % groups != 0 || channels_ % groups != 0,
             "{} groups must divide both the {} input channels and the {} output channels", groups, in,
             channels_);
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
  InitArgument init_;
  ConvolutionShape shape_;
  Precision precision_ = Precision::kFp32;
  Range weight_;
  Range bias_;  // stays empty without one
};

}  // namespace

std::vector<LayerEntry> convolution_layers() {
  return {
      {.name = "conv2d",
       .signature =
           "conv2d(channels, size, stride=1, padding=valid, dilation=1, groups=1, bias=true, init=WORD)",
       .help =
           "convolution of an image with windows of size x size pixels; padding: valid (none), same (the "
           "output has ceil(input / stride) pixels a side, as in TensorFlow) or a number of pixels on each "
           "side; groups: a number, or depthwise (as many as input channels); init as for dense",
       .example = "conv2d(4, 3, stride=2, padding=same, groups=2)",
       .example_input = {{5, 4, 2}},
       .make = [](TermArguments& arguments) { return std::make_unique<ConvolutionLayer>(arguments, false); }},
      {.name = "conv1d",
       .signature =
           "conv1d(channels, width, stride=1, padding=valid, dilation=1, groups=1, bias=true, init=WORD)",
       .help =
           "convolution of a sequence with windows of so many positions; padding: valid (none), same (the "
           "output has ceil(input / stride) positions), causal (all before: position t sees nothing after t) "
           "or a number of positions on each side; groups and init as for conv2d",
       .example = "conv1d(4, 3, stride=2, padding=causal, groups=2)",
       .example_input = SequenceShape{.positions = 5, .channels = 2}.shape(),
       .make = [](TermArguments& arguments) { return std::make_unique<ConvolutionLayer>(arguments, true); }}};
}

}  // namespace lockstep
