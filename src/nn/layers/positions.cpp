// Adds to each position of a sequence a vector that says which it is.
#include <cmath>
#include <memory>
#include <string>

#include "arguments.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "position_angles.h"
#include "scratch.h"

namespace lockstep {
namespace {

class Positions final : public Layer {
 public:
  explicit Positions(TermArguments& arguments)
      : kind_(arguments.take_next("learned or sinusoidal")), init_(arguments) {
    if (kind_ != "learned" && kind_ != "sinusoidal")
      throw ConfigError("expected learned or sinusoidal, found {}", in_quotes(kind_));
    error_if(init_.given() && !is_learned(), "sinusoidal positions have no weights: leave out init");
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    sequence_ = expect_sequence(inputs.front());
    const auto [positions, channels] = sequence_;
    const LayerTraits traits{.out = inputs.front(),
                             .in_place = true,
                             .reads_input = false,
                             .flops = positions * channels,
                             .kept_size = 0};
    if (is_learned()) {
      weight_ = params.declare(init_.of(
          params,
          {.name = "weight", .shape = {{positions, channels}}, .fan_in = channels, .fan_out = positions}));
      return traits;
    }
    error_if(channels % 2 != 0,
             "sinusoidal positions are pairs of a sine and a cosine, and there are {} channels", channels);
    waves_ = AlignedBuffer<Scalar>(positions * channels);
    for (Index t = 0; t < positions; ++t) {
      for (Index i = 0; i < channels; ++i) {
        const double angle = position_angle(t, i / 2, channels);
        at(waves_.span(), t * channels + i) =
            static_cast<Scalar>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
    return traits;
  }

  void forward(const ForwardArgs& args) const override {
    if (args.y.data() != args.x().data()) std::ranges::copy(args.x().values(), args.y.data());
    add_to_rows(vectors(args), args.y);
  }
  void forward_next(const ForwardArgs& args, Index position, std::span<Scalar>) const override {
    const Index channels = sequence_.channels;
    std::ranges::copy(args.x().values(), args.y.data());
    add_to_rows(part(vectors(args), {position * channels, (position + 1) * channels}), args.y);
  }

  void backward(const BackwardArgs& args) const override {
    if (is_learned()) sum_rows(args.dy, part(args.gradient, weight_), args.write);
    if (args.dx() != nullptr && args.dx()->data() != args.dy.data())
      std::ranges::copy(args.dy.values(), args.dx()->data());
  }

  bool takes_sequences() const override { return true; }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string& x = layer.inputs.front();
    if (is_learned()) return graph.add("Add", {x, onnx_first_rows(graph, layer.tensors.front(), x)});
    const auto [positions, channels] = sequence_;
    const std::string angles = onnx_angles(graph, x, positions, channels);
    const auto wave = [&, half = channels / 2](const char* function) {
      return graph.reshape(graph.add(function, {angles}), {-1, half, 1});
    };
    const std::string pairs = graph.add("Concat", {wave("Sin"), wave("Cos")}, {{"axis", Index{2}}});
    return graph.add("Add", {x, graph.reshape(pairs, {-1, channels})});
  }

 private:
  bool is_learned() const { return kind_ == "learned"; }
  std::span<const Scalar> vectors(const PassArgs& args) const {
    return is_learned() ? part(args.weights, weight_) : waves_.span();
  }

  std::string kind_;
  InitArgument init_;
  SequenceShape sequence_;
  Range weight_;
  AlignedBuffer<Scalar> waves_;
};

}  // namespace

LayerEntry positions_entry() {
  return {
      .name = "positions",
      .signature = "positions(learned | sinusoidal, init=WORD)",
      .help =
          "adds to each position of a sequence a vector of its own: a weight, or sines and cosines of many "
          "wavelengths (Vaswani et al. 2017); init as for dense",
      .example = "positions(learned)",
      .example_input = SequenceShape{.positions = 4, .channels = 3}.shape(),
      .make = [](TermArguments& arguments) { return std::make_unique<Positions>(arguments); }};
}

}  // namespace lockstep
