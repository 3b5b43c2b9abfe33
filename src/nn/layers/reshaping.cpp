// Layers that reorder the numbers of a sample or leave some out, and compute nothing.
#include <algorithm>

#include "layer_parts.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {
namespace {

// A sample of any shape becomes one vector. An image becomes its channels one after the other, as in
// PyTorch, so that the weights of a dense layer behind it mean the same there; a sequence becomes its
// positions.

class Flatten final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    const std::optional<ImageShape> image = as_image(inputs.front());
    if (image) {
      pixels_ = image->pixels();
      channels_ = image->channels;
    }
    return {.out = {{inputs.front().size()}},
            .only_reshapes = pixels_ == 1 || channels_ == 1,
            .reads_input = false,
            .masks = false};
  }

  void forward(const ForwardArgs& args) const override {
    transpose_samples(args.x(), pixels_, channels_, args.y);
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() != nullptr) transpose_samples(args.dy, channels_, pixels_, *args.dx());
  }

  bool takes_sequences() const override { return true; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return onnx_flat(graph, layer.inputs.front(), layer.in.front());
  }

 private:
  Index pixels_ = 1;
  Index channels_ = 1;
};

// A row or an image becomes positions x channels. Nothing moves, but where the numbers of a row stand channel
// after channel.

class AsSequence final : public Layer {
 public:
  explicit AsSequence(TermArguments& arguments) : positions_(arguments.take_index("positions", 1)) {
    const std::string order = arguments.take_word("order", "positions");
    by_channel_ = order == "channels";
    if (order != "positions" && !by_channel_)
      throw ConfigError("'order' must be positions or channels, found {}", in_quotes(order));
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    const Shape& in = inputs.front();
    const std::optional<ImageShape> image = as_image(in);
    if (in.sequence) throw ConfigError("it is a sequence already");
    if (image && (by_channel_ || image->height != positions_)) {
      throw ConfigError("an image becomes a sequence of its {} rows, in order of positions", image->height);
    }
    error_if(in.size() % positions_ != 0, "{} numbers are not {} positions of equally many", in.size(),
             positions_);
    channels_ = in.size() / positions_;
    return {.out = SequenceShape{.positions = positions_, .channels = channels_}.shape(),
            .only_reshapes = !by_channel_ || positions_ == 1 || channels_ == 1,
            .reads_input = false};
  }

  void forward(const ForwardArgs& args) const override {
    transpose_samples(args.x(), channels_, positions_, args.y);
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() != nullptr) transpose_samples(args.dy, positions_, channels_, *args.dx());
  }

  bool takes_sequences() const override { return true; }  // to refuse them
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string rows = onnx_rows(graph, layer.inputs.front(), layer.in.front());
    if (!by_channel_) return graph.reshape(rows, {-1, positions_, channels_});
    const std::string turned = graph.reshape(rows, {-1, channels_, positions_});
    return onnx_swapped(graph, turned);
  }

 private:
  Index positions_;
  bool by_channel_ = false;
  Index channels_ = 1;
};

// The last position of a sequence that counts.

class Last final : public Layer {
 public:
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    sequence_ = expect_sequence(inputs.front());
    return {.out = {{sequence_.channels}}, .reads_input = false};
  }

  void forward(const ForwardArgs& args) const override {
    std::ranges::fill(args.y.values(), Scalar{0});
    for_each_last(args.lengths, args.y.rows(), [&](Index in, Index out) {
      std::copy_n(args.x().data() + in, sequence_.channels, args.y.data() + out);
    });
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    std::ranges::fill(args.dx()->values(), Scalar{0});
    for_each_last(args.lengths, args.dy.rows(), [&](Index in, Index out) {
      std::copy_n(args.dy.data() + out, sequence_.channels, args.dx()->data() + in);
    });
  }

  bool takes_sequences() const override { return true; }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    if (!layer.lengths.empty()) return add_last(graph, layer);
    const Range last{sequence_.positions - 1, sequence_.positions};
    return graph.flatten(onnx_slice(graph, layer.inputs.front(), last, 1));
  }

 private:
  // The sum over all positions, of which the last that counts is the only one that is not 0.
  std::string add_last(OnnxNodes& graph, const OnnxLayer& layer) const {
    std::vector<Index> lengths(static_cast<std::size_t>(sequence_.positions));
    std::iota(lengths.begin(), lengths.end(), Index{1});
    const std::string is_last = graph.add("Equal", {onnx_lengths(graph, layer), graph.add_list(lengths)});
    const std::string alone = graph.add("Where", {graph.add("Unsqueeze", {is_last, graph.add_list({2})}),
                                                  layer.inputs.front(), graph.add_number(0)});
    return graph.flatten(graph.add("ReduceSum", {alone, graph.add_list({1})}));
  }

  // Calls visit(where its last position begins, where its output does) for each sample that has one.
  template <class Visit>
  void for_each_last(const Lengths& lengths, Index rows, const Visit& visit) const {
    for (Index row = 0; row < rows; ++row) {
      const Index count = lengths.of(row, sequence_.positions);
      if (count == 0) continue;
      visit((row * sequence_.positions + count - 1) * sequence_.channels, row * sequence_.channels);
    }
  }

  SequenceShape sequence_;
};

// Some neighbouring features of a vector, for chains of concat and wide_deep that look at different columns.

class Slice final : public Layer {
 public:
  explicit Slice(TermArguments& arguments)
      : first_(arguments.take_index("first", 0)), count_(arguments.take_index("count", 1)) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    const Shape& in = inputs.front();
    if (in.dims.size() != 1) throw ConfigError("expected a vector: put flatten before it");
    error_if(count_ > in.size() || first_ > in.size() - count_,
             "{} features from number {} on are more than the {} there are (the first is 0)", count_, first_,
             in.size());
    return {.out = {{count_}}, .reads_input = false};
  }

  void forward(const ForwardArgs& args) const override {
    as_eigen(args.y) = as_eigen(args.x()).middleCols(first_, count_);
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    Eigen::Map<RowMajorMatrix> dx = as_eigen(*args.dx());
    dx.setZero();
    dx.middleCols(first_, count_) = as_eigen(args.dy);
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return onnx_slice(graph, layer.inputs.front(), {first_, first_ + count_}, 1);
  }

 private:
  Index first_;
  Index count_;
};

}  // namespace

std::vector<LayerEntry> reshaping_layers() {
  return {
      {.name = "flatten",
       .signature = "flatten",
       .help =
           "a sample of any shape becomes one vector, an image channel by channel, a sequence position by "
           "position",
       .example = "flatten",
       .example_input = {{2, 3, 4}},
       .make = [](TermArguments&) { return std::make_unique<Flatten>(); }},
      {.name = "as_sequence",
       .signature = "as_sequence(positions, order=positions)",
       .help = "a row, or an image row by row, becomes a sequence of so many positions; order=channels: the "
               "numbers of a row stand channel after channel, as those of a window of a table do",
       .example = "as_sequence(3, order=channels)",
       .example_input = {{6}},
       .make = [](TermArguments& arguments) { return std::make_unique<AsSequence>(arguments); }},
      {.name = "last",
       .signature = "last",
       .help = "the last position of a sequence that counts, as a vector; zeros where none does",
       .example = "last",
       .example_input = SequenceShape{.positions = 2, .channels = 3}.shape(),
       .make = [](TermArguments&) { return std::make_unique<Last>(); }},
      {.name = "slice",
       .signature = "slice(first, count)",
       .help = "the features first, first + 1, ..., first + count - 1 of a vector (the first is 0)",
       .example = "slice(1, 3)",
       .example_input = {{5}},
       .make = [](TermArguments& arguments) { return std::make_unique<Slice>(arguments); }}};
}

}  // namespace lockstep
