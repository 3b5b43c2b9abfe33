// y = x W^T + b. In bf16 x, W and dy are rounded, and nothing else.
#include <fmt/format.h>

#include "bf16_operands.h"
#include "entries.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/math/bf16_kernels.h"

namespace lockstep {
namespace {

class Dense final : public Layer {
 public:
  explicit Dense(TermArguments& arguments)
      : units_(arguments.take_index("units", 1)),
        init_(arguments.take_word("init", "")),
        has_bias_(arguments.take_flag("bias", true)),
        tie_(arguments.take_word("tie", "")) {
    if (!init_.empty()) parse_initialiser(init_);
    if (!init_.empty() && !tie_.empty())
      throw ConfigError("a shared weight has the init of its owner: leave out init");
  }

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const std::optional<PictureShape> picture = as_picture(inputs.front());
    if (picture && picture->channels > 1 && picture->pixels() > 1) {
      throw ConfigError("a picture with channels has to become a vector first: put flatten before it");
    }
    inputs_ = inputs.front().size();
    precision_ = params.precision();
    const Shape shape{{units_, inputs_}};
    weight_ = !tie_.empty() ? params.tie(tie_, shape)
                            : params.declare({.name = "weight",
                                              .shape = shape,
                                              .initialiser = init_.empty() ? params.default_initialiser()
                                                                           : parse_initialiser(init_),
                                              .fan_in = inputs_,
                                              .fan_out = units_});
    if (has_bias_) bias_ = params.declare({.name = "bias", .shape = {{units_}}, .decays = false});
    return {{units_}};
  }

  void forward(const ForwardArgs& args) const override {
    if (precision_ == Precision::kBf16) {
      multiply_forward(rounded_input(args.x()), as_matrix(part(args.rounded, weight_), units_, inputs_),
                       args.y);
    } else {
      multiply_forward(args.x(), as_matrix(part(args.weights, weight_), units_, inputs_), args.y);
    }
    if (has_bias_) add_to_rows(part(args.weights, bias_), args.y);
  }

  void backward(const BackwardArgs& args) const override {
    if (has_bias_) sum_rows(args.dy, part(args.gradient, bias_), args.write);
    Matrix dweight = as_matrix(part(args.gradient, weight_), units_, inputs_);
    if (precision_ == Precision::kBf16) return backward_in_bf16(args, dweight);
    multiply_backward_weights(args.dy, args.x(), dweight, args.write);
    if (args.dx() != nullptr) {
      multiply_backward_data(args.dy, as_matrix(part(args.weights, weight_), units_, inputs_), *args.dx());
    }
  }

  Operation operation() const override {
    return {.name = "dense", .attributes = {{"bias", has_bias_ ? 1 : 0}}, .tensors = tensors()};
  }
  Index flops() const override { return 2 * units_ * inputs_; }
  Range rounded_tensor() const override { return precision_ == Precision::kBf16 ? weight_ : Range{}; }

 private:
  void backward_in_bf16(const BackwardArgs& args, Matrix& dweight) const {
    const Bf16Matrix dy = rounded_output_gradient(args.dy);
    multiply_backward_weights(dy, rounded_input(args.x()), dweight, args.write);
    if (args.dx() != nullptr) {
      multiply_backward_data(dy, as_matrix(part(args.rounded, weight_), units_, inputs_), *args.dx());
    }
  }

  std::vector<Range> tensors() const {
    return has_bias_ ? std::vector{weight_, bias_} : std::vector{weight_};
  }

  Index units_;
  std::string init_;
  bool has_bias_;
  std::string tie_;
  Index inputs_ = 0;
  Precision precision_ = Precision::kFp32;
  Range weight_;
  Range bias_;
};

}  // namespace

LayerEntry dense_entry() {
  return {.name = "dense",
          .signature = "dense(units, init=WORD, bias=true, tie=LAYER)",
          .help =
              "y = x W^T + b; init: he, xavier, normal or zero for this layer; tie: the number of an earlier "
              "layer whose weight, of the same shape, is this one's too",
          .example = "dense(5)",
          .example_input = {{6}},
          .make = [](TermArguments& arguments) { return std::make_unique<Dense>(arguments); }};
}

}  // namespace lockstep
