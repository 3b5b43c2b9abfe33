// The mean or the largest value of each window over an image or a sequence, or of one over all, channel by
// channel.
#include <algorithm>
#include <limits>
#include <utility>

#include "image_window.h"
#include "layer_parts.h"
#include "lockstep/math/pooling.h"

namespace lockstep {
namespace {

struct PoolingKind {
  bool largest = false;    // of the values, else their mean
  bool over_time = false;  // of a sequence, else of an image
  bool global = false;     // one window over all; the output is a vector
};

// size, stride (default: size) and padding.
WindowArguments take_pooling(const PoolingKind& kind, TermArguments& arguments) {
  if (kind.global) return {.over_time = kind.over_time};
  const Index size = arguments.take_index(kind.over_time ? "width" : "size", 1);
  return {.size = size,
          .stride = arguments.take_index("stride", 1, size),
          .padding = arguments.take_word("padding", "valid"),
          .over_time = kind.over_time};
}

// Winners are kept in the memory of the cache, one at the position of each scalar.
static_assert(sizeof(std::int32_t) == sizeof(Scalar) && alignof(std::int32_t) == alignof(Scalar));

class Pooling final : public Layer {
 public:
  Pooling(PoolingKind kind, TermArguments& arguments)
      : kind_(std::move(kind)), window_(take_pooling(kind_, arguments)) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    const Shape& in = inputs.front();
    error_if(kind_.largest && in.size() > std::numeric_limits<std::int32_t>::max(),
             "{} of more than {} numbers is too large to pool", kind_.over_time ? "a sequence" : "an image",
             std::numeric_limits<std::int32_t>::max());
    const ImageWindows windows = place_windows(window_, in);
    shape_ = {.in_height = windows.image.height,
              .in_width = windows.image.width,
              .channels = windows.image.channels,
              .vertical = windows.vertical,
              .horizontal = windows.horizontal};
    Shape out = in;
    if (kind_.global) {
      shape_.vertical = {.size = shape_.in_height};
      shape_.horizontal = {.size = shape_.in_width};
      out = {{shape_.channels}};
    } else {
      out.dims[0] = kind_.over_time ? shape_.out_width() : shape_.out_height();
      if (!kind_.over_time) out.dims[1] = shape_.out_width();
    }
    return {.out = out,
            .reads_input = false,
            .cache_size = kind_.largest ? shape_.out_size() : 0,
            .flops = shape_.out_size() * shape_.vertical.size * shape_.horizontal.size};
  }

  void forward(const ForwardArgs& args) const override {
    for_each_shape(args.lengths, args.y, [&](const PoolingShape& shape, Range rows, Matrix& y) {
      const ConstMatrix x = rows_of(args.x(), rows);
      if (!kind_.largest) return average_pool_forward(shape, x, y);
      max_pool_forward(shape, x, y, winners<std::int32_t>(args.cache, rows));
    });
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    for_each_shape(args.lengths, *args.dx(), [&](const PoolingShape& shape, Range rows, Matrix& dx) {
      const ConstMatrix dy = rows_of(args.dy, rows);
      if (!kind_.largest) return average_pool_backward(shape, dy, dx);
      max_pool_backward(shape, dy, winners<const std::int32_t>(args.cache, rows), dx);
    });
  }

  bool takes_sequences() const override { return true; }  // those of images refuse them
  Index length_of_output(Index length) const override {
    return length == 0 ? 0 : shape_.horizontal.positions(length);
  }
  // Padding is the least number, or it adds 0 to a mean, which is divided by the share that counts. What
  // comes of a window without any position that counts is padding.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const bool masked = !layer.lengths.empty();
    if (kind_.global) return add_global(graph, layer);
    const std::string in =
        kind_.over_time ? onnx_masked(graph, layer, kind_.largest ? -kInfinity : 0) : layer.inputs.front();
    const std::string x = kind_.over_time ? onnx_swapped(graph, in) : in;
    std::string y = add_windows(graph, x);
    if (masked && !kind_.largest) {
      const std::string counts = graph.add("Cast", {onnx_counted(graph, layer)}, {{"to", kOnnxFloat}});
      y = graph.add("Div", {y, add_windows(graph, onnx_swapped(graph, counts))});
    }
    return kind_.over_time ? onnx_swapped(graph, y) : y;
  }

 private:
  // Calls work(shape, rows, their part of `to`) for all samples at once; where they have padding for each
  // sample, as if it had the positions alone that count. What is not worked on stays 0.
  template <class Work>
  void for_each_shape(const Lengths& lengths, Matrix& to, const Work& work) const {
    if (!lengths.given()) return work(shape_, Range{0, to.rows()}, to);
    std::ranges::fill(to.values(), Scalar{0});
    PoolingShape shape = shape_;
    for (Index row = 0; row < to.rows(); ++row) {
      shape.in_width = lengths[row];
      if (shape.in_width == 0) continue;
      if (kind_.global) shape.horizontal.size = shape.in_width;
      Matrix sample(to.data() + row * to.cols(), 1, to.cols());
      work(shape, Range{row, row + 1}, sample);
    }
  }

  std::string add_windows(OnnxNodes& graph, const std::string& x) const {
    const std::vector<Window> axes = onnx_axes(shape_, window_);
    std::vector<OnnxAttribute> attributes{{"kernel_shape", onnx_numbers(axes, &Window::size)},
                                          {"strides", onnx_numbers(axes, &Window::stride)},
                                          {"pads", onnx_padding(axes)}};
    if (!kind_.largest) attributes.emplace_back("count_include_pad", Index{0});
    return graph.add(kind_.largest ? "MaxPool" : "AveragePool", {x}, attributes);
  }

  // Nothing that counts comes to 0.
  std::string add_global(OnnxNodes& graph, const OnnxLayer& layer) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const std::string in = onnx_masked(graph, layer, kind_.largest ? -kInfinity : 0);
    const std::string operation = kind_.largest ? "GlobalMaxPool" : "GlobalAveragePool";
    const std::string y =
        graph.flatten(graph.add(operation, {kind_.over_time ? onnx_swapped(graph, in) : in}));
    if (layer.lengths.empty()) return y;
    const std::string lengths = onnx_lengths(graph, layer);
    const std::string some = graph.add("Greater", {lengths, graph.add_list({0})});
    if (kind_.largest) return graph.add("Where", {some, y, graph.add_number(0)});
    const std::string all = graph.add_number(static_cast<double>(shape_.in_width));
    const std::string count = graph.add("Cast", {lengths}, {{"to", kOnnxFloat}});
    const std::string mean = graph.add("Div", {graph.add("Mul", {y, all}), count});
    return graph.add("Where", {some, mean, graph.add_number(0)});
  }

  template <class Winner, class Number>
  std::span<Winner> winners(std::span<Number> cache, Range rows) const {
    const std::span<Number> own = part(cache, {rows.begin * shape_.out_size(), rows.end * shape_.out_size()});
    return {reinterpret_cast<Winner*>(own.data()), own.size()};
  }

  PoolingKind kind_;
  WindowArguments window_;
  PoolingShape shape_;
};

auto maker(const PoolingKind& kind) {
  return [kind](TermArguments& arguments) { return std::make_unique<Pooling>(kind, arguments); };
}

}  // namespace

std::vector<LayerEntry> pooling_layers() {
  return {
      {.name = "avgpool",
       .signature = "avgpool(size, stride=size, padding=valid)",
       .help = "the mean of each window of size x size pixels; padding (valid, same or a number of pixels on "
               "each side) does not count (PyTorch: count_include_pad=False)",
       .example = "avgpool(3, 2, padding=1)",
       .example_input = {{5, 4, 2}},
       .make = maker({})},
      {.name = "maxpool",
       .signature = "maxpool(size, stride=size, padding=valid)",
       .help = "the largest value of each window of size x size pixels; padding (valid, same or a number of "
               "pixels on each side) never wins",
       .example = "maxpool(3, 2, padding=1)",
       .example_input = {{5, 4, 2}},
       .make = maker({.largest = true})},
      {.name = "global_avgpool",
       .signature = "global_avgpool",
       .help = "the mean of each channel of an image, as a vector (Lin et al. 2013)",
       .example = "global_avgpool",
       .example_input = {{3, 2, 4}},
       .make = maker({.global = true})},
      {.name = "avgpool1d",
       .signature = "avgpool1d(width, stride=width, padding=valid)",
       .help =
           "the mean of each window of so many positions of a sequence; padding as for conv1d, and does not "
           "count",
       .example = "avgpool1d(3, 2, padding=1)",
       .example_input = SequenceShape{.positions = 5, .channels = 2}.shape(),
       .make = maker({.over_time = true})},
      {.name = "maxpool1d",
       .signature = "maxpool1d(width, stride=width, padding=valid)",
       .help =
           "the largest value of each window of so many positions of a sequence; padding as for conv1d, and "
           "never wins",
       .example = "maxpool1d(3, 2, padding=1)",
       .example_input = SequenceShape{.positions = 5, .channels = 2}.shape(),
       .make = maker({.largest = true, .over_time = true})},
      {.name = "mean_over_time",
       .signature = "mean_over_time",
       .help = "the mean of each channel of a sequence over the positions that count, as a vector; 0 of none",
       .example = "mean_over_time",
       .example_input = SequenceShape{.positions = 4, .channels = 3}.shape(),
       .make = maker({.over_time = true, .global = true})},
      {.name = "max_over_time",
       .signature = "max_over_time",
       .help =
           "the largest value of each channel of a sequence over the positions that count, as a vector; 0 "
           "of none",
       .example = "max_over_time",
       .example_input = SequenceShape{.positions = 4, .channels = 3}.shape(),
       .make = maker({.largest = true, .over_time = true, .global = true})}};
}

}  // namespace lockstep
