// A sample of any shape becomes one vector. An image becomes its channels one after the other, as in
// PyTorch, so that the weights of a dense layer behind it mean the same there; a sequence becomes its
// positions.
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "scratch.h"

namespace lockstep {
namespace {

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

}  // namespace

LayerEntry flatten_entry() {
  return {.name = "flatten",
          .signature = "flatten",
          .help =
              "a sample of any shape becomes one vector, an image channel by channel, a sequence position by "
              "position",
          .example = "flatten",
          .example_input = {{2, 3, 4}},
          .make = [](TermArguments&) { return std::make_unique<Flatten>(); }};
}

}  // namespace lockstep
