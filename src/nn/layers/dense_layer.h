// The arguments, tensors and shapes of dense layers, y = x W^T + b; how they multiply is theirs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "init_argument.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {

class DenseLayer : public Layer, public OnnxWords {
 public:
  explicit DenseLayer(TermArguments& arguments)
      : units_(arguments.take_index("units", 1)),
        init_(take_initialiser(arguments)),
        has_bias_(arguments.take_flag("bias", true)),
        tie_(arguments.take_word("tie", "")) {
    if (init_ && !tie_.empty())
      throw ConfigError("a shared weight has the init of its owner: leave out init");
  }

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const std::optional<ImageShape> image = as_image(inputs.front());
    if (image && image->channels > 1 && image->pixels() > 1) {
      throw ConfigError("an image with channels has to become a vector first: put flatten before it");
    }
    inputs_ = inputs.front().size();
    precision_ = params.precision();
    const Shape shape{{units_, inputs_}};
    weight_ = !tie_.empty() ? params.tie(tie_, shape)
                            : params.declare({.name = "weight",
                                              .shape = shape,
                                              .initialiser = init_.value_or(params.default_initialiser()),
                                              .fan_in = inputs_,
                                              .fan_out = units_});
    if (has_bias_) bias_ = params.declare({.name = "bias", .shape = {{units_}}, .decays = false});
    return {{units_}};
  }

  Operation operation() const override {
    return {.name = "dense", .attributes = {{"bias", has_bias_ ? 1 : 0}}, .tensors = tensors()};
  }
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string x = onnx_flat(graph, layer.inputs.front(), layer.in.front());
    return graph.add("Gemm", joined_names({x}, layer.tensors), {{"transB", Index{1}}});
  }
  Index flops() const override { return 2 * units_ * inputs_; }

 protected:
  bool in_bf16() const { return precision_ == Precision::kBf16; }
  bool is_tied() const { return !tie_.empty(); }
  bool has_bias() const { return has_bias_; }

  /// The weights that a pass computes with.
  template <class Args>
  std::span<const Scalar> exact_weight(const Args& args) const {
    return is_tied() ? args.tied.exact : part(args.weights, weight_);
  }
  template <class Args>
  std::span<const Bf16> rounded_weight(const Args& args) const {
    return is_tied() ? args.tied.rounded : part(args.rounded, weight_);
  }

  Index units_;
  Index inputs_ = 0;
  Range weight_;
  Range bias_;

 private:
  std::vector<Range> tensors() const {
    return has_bias_ ? std::vector{weight_, bias_} : std::vector{weight_};
  }

  std::optional<Initialiser> init_;
  bool has_bias_;
  std::string tie_;
  Precision precision_ = Precision::kFp32;
};

/// dense(units, split=rows), after that argument is taken.
std::unique_ptr<Layer> make_split_dense(TermArguments& arguments);

}  // namespace lockstep
