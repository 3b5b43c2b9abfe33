// y = x W^T + b. The whole sample is taken as one vector, whatever its shape.
#include "entries.h"
#include "lockstep/base/aligned_buffer.h"

namespace lockstep {
namespace {

class Dense final : public Layer {
 public:
  explicit Dense(LayerArguments& arguments)
      : units_(arguments.take_index("units", 1)), init_(arguments.take_word("init", "")) {
    if (!init_.empty()) parse_initialiser(init_);
  }

  Shape declare(const Shape& in, ParamDeclarer& params) override {
    inputs_ = in.size();
    weight_ = params.declare(
        {.name = "weight",
         .shape = {{units_, inputs_}},
         .initialiser = init_.empty() ? params.default_initialiser() : parse_initialiser(init_),
         .fan_in = inputs_,
         .fan_out = units_});
    bias_ = params.declare({.name = "bias", .shape = {{units_}}, .decays = false});
    return {{units_}};
  }

  void forward(ForwardArgs args) const override {
    multiply_forward(args.x, as_matrix(part(args.params, weight_), units_, inputs_), args.y);
    add_to_rows(part(args.params, bias_), args.y);
  }

  void backward(BackwardArgs args) const override {
    Matrix dweight = as_matrix(part(args.dparams, weight_), units_, inputs_);
    multiply_backward_weights(args.dy, args.x, dweight, args.write);
    sum_rows(args.dy, part(args.dparams, bias_), args.write);
    if (args.dx != nullptr) {
      multiply_backward_data(args.dy, as_matrix(part(args.params, weight_), units_, inputs_), *args.dx);
    }
  }

  Index flops() const override { return 2 * units_ * inputs_; }

 private:
  Index units_;
  std::string init_;
  Index inputs_ = 0;
  Range weight_;
  Range bias_;
};

}  // namespace

LayerEntry dense_entry() {
  return {
      .name = "dense",
      .signature = "dense(units, init=WORD)",
      .help =
          "y = x W^T + b on the whole sample as one vector; init: he, xavier, normal or zero for this layer",
      .example = "dense(5)",
      .make = [](LayerArguments& arguments) { return std::make_unique<Dense>(arguments); }};
}

}  // namespace lockstep
