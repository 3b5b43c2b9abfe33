// Inverted dropout: what is kept is scaled up in training, so that evaluation needs no change.
#include <cmath>

#include "layer_parts.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/elementary.h"

namespace lockstep {
namespace {

class Dropout final : public Layer {
 public:
  explicit Dropout(TermArguments& arguments) : rate_(take_dropout_rate(arguments, "rate", 0.5)) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    size_ = inputs.front().size();
    number_ = params.number();
    return {
        .out = inputs.front(), .in_place = true, .reads_input = false, .cache_size = size_, .flops = size_};
  }

  void forward(const ForwardArgs& args) const override {
    if (!args.batch.training) {
      as_array(args.y) = as_array(args.x());
      return;
    }
    for (Index row = 0; row < args.y.rows(); ++row) {
      draw_mask(args.batch, row,
                args.cache.subspan(static_cast<std::size_t>(row * size_), static_cast<std::size_t>(size_)));
    }
    // A product, not a choice: what is not a number stays so even where it is dropped.
    as_array(args.y) = as_array(args.x()) * as_array(std::span<const Scalar>(args.cache));
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() != nullptr) as_array(*args.dx()) = as_array(args.dy) * as_array(args.cache);
  }

  // Only training drops.
  std::string add_to(OnnxNodes&, const OnnxLayer& layer) const override { return layer.inputs.front(); }

 private:
  void draw_mask(const BatchContext& batch, Index row, std::span<Scalar> mask) const {
    thread_local std::vector<std::uint32_t> bits;
    bits.resize(mask.size());
    fill_bits(dropout_stream(batch, row, number_), bits);
    const auto kept = static_cast<Scalar>(1 / (1 - rate_));
    // 24 bits are a number in [0, 1), of which those below the rate are dropped.
    const auto dropped = static_cast<std::uint32_t>(std::ceil(rate_ * 0x1p24));
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = value_if((bits[i] >> 8) >= dropped, kept);
  }

  double rate_;
  Index size_ = 0;
  Index number_ = 0;
};

}  // namespace

LayerEntry dropout_entry() {
  return {
      .name = "dropout",
      .signature = "dropout(rate=0.5)",
      .help =
          "in training each number becomes 0 with this probability, and the others are multiplied by 1 / (1 "
          "- rate) (Srivastava et al. 2014); nothing in evaluation",
      .example = "dropout(0.4)",
      .example_input = {{6}},
      .make = [](TermArguments& arguments) { return std::make_unique<Dropout>(arguments); }};
}

}  // namespace lockstep
