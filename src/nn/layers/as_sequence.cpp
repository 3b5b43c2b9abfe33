// A row or an image becomes positions x channels. Nothing moves, but where the numbers of a row stand channel
// after channel.
#include "arguments.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "scratch.h"

namespace lockstep {
namespace {

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

}  // namespace

LayerEntry as_sequence_entry() {
  return {.name = "as_sequence",
          .signature = "as_sequence(positions, order=positions)",
          .help =
              "a row, or an image row by row, becomes a sequence of so many positions; order=channels: the "
              "numbers of a row stand channel after channel, as those of a window of a table do",
          .example = "as_sequence(3, order=channels)",
          .example_input = {{6}},
          .make = [](TermArguments& arguments) { return std::make_unique<AsSequence>(arguments); }};
}

}  // namespace lockstep
