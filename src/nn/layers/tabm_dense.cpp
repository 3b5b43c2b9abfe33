// A dense layer whose weight all members of an ensemble share: y[m] = ((x[m] * in[m]) W^T) * out[m] +
// bias[m], so that the weight of a member is W times a matrix of rank one (Wen et al. 2020; Gorishniy et al.
// 2025). The members of all samples are the rows of one product. Forward keeps x * in and the product for the
// backward pass.
#include <algorithm>

#include "feature_scales.h"
#include "init_argument.h"
#include "lockstep/nn/ensemble.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "members.h"
#include "scratch.h"

namespace lockstep {
namespace {

class TabMDense final : public Layer, public OnnxWords, public EnsembleLayer {
 public:
  explicit TabMDense(TermArguments& arguments)
      : units_(arguments.take_index("units", 1)), init_(take_initialiser(arguments)) {}

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    members_ = members_of(inputs.front());
    inputs_ = inputs.front().dims[1];
    weight_ = params.declare({.name = "weight",
                              .shape = {{units_, inputs_}},
                              .initialiser = init_.value_or(params.default_initialiser()),
                              .fan_in = inputs_,
                              .fan_out = units_});
    const auto scale = [&](const char* name, Index size, Initialiser initialiser) {
      return params.declare(
          {.name = name, .shape = {{members_, size}}, .decays = false, .initialiser = initialiser});
    };
    in_ = scale("in_scale", inputs_, Initialiser::kOne);
    out_ = scale("out_scale", units_, Initialiser::kOne);
    bias_ = scale("bias", units_, Initialiser::kZero);
    return {{members_, units_}};
  }

  // To scales and biases a sample is one row, with the members side by side.
  void forward(const ForwardArgs& args) const override {
    const Index samples = args.y.rows();
    const Index rows = samples * members_;
    Matrix scaled(args.cache.data(), rows, inputs_);
    Matrix product(args.cache.data() + rows * inputs_, rows, units_);
    scale_rows(args.x().data(), part(args.weights, in_).data(), samples, members_ * inputs_, scaled.data());
    multiply_forward(as_const(scaled), as_matrix(part(args.weights, weight_), units_, inputs_), {}, product);
    scale_rows(product.data(), part(args.weights, out_).data(), samples, members_ * units_, args.y.data());
    add_to_rows(part(args.weights, bias_), args.y);
  }

  void backward(const BackwardArgs& args) const override {
    const Index samples = args.dy.rows();
    const Index rows = samples * members_;
    const ConstMatrix scaled(args.cache.data(), rows, inputs_);
    const Scalar* const product = args.cache.data() + rows * inputs_;
    if (args.write == Write::kReplace) {
      for (const Range range : {in_, out_}) std::ranges::fill(part(args.gradient, range), Scalar{0});
    }
    const Scalar* const dy = args.dy.data();
    sum_rows(args.dy, part(args.gradient, bias_), args.write);
    add_products(dy, product, samples, members_ * units_, part(args.gradient, out_).data());
    Scalar* const scratch = layer_scratch(rows * (units_ + inputs_));
    Matrix dproduct(scratch, rows, units_);
    scale_rows(dy, part(args.weights, out_).data(), samples, members_ * units_, dproduct.data());
    Matrix dscaled(scratch + rows * units_, rows, inputs_);
    multiply_backward_data(as_const(dproduct), as_matrix(part(args.weights, weight_), units_, inputs_),
                           dscaled);
    add_products(dscaled.data(), args.x().data(), samples, members_ * inputs_,
                 part(args.gradient, in_).data());
    if (args.dx() != nullptr) {
      scale_rows(dscaled.data(), part(args.weights, in_).data(), samples, members_ * inputs_,
                 args.dx()->data());
    }
    Matrix dweight = as_matrix(part(args.gradient, weight_), units_, inputs_);
    multiply_backward_weights(as_const(dproduct), scaled, {0, units_}, dweight, args.write);
  }

  EnsemblePart ensemble_part() const override { return EnsemblePart::kInside; }
  Operation operation() const override {
    return {.name = "tabm_dense", .tensors = {weight_, in_, out_, bias_}};
  }
  // Inside the graph [N, 1, members, size], as all samples of two dimensions.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string scaled = graph.add("Mul", {layer.inputs.front(), layer.tensors[1]});
    const std::string weight =
        graph.add("Transpose", {layer.tensors[0]}, {{"perm", std::vector<Index>{1, 0}}});
    const std::string product = graph.add("MatMul", {scaled, weight});
    return graph.add("Add", {graph.add("Mul", {product, layer.tensors[2]}), layer.tensors[3]});
  }
  Index cache_size() const override { return members_ * (inputs_ + units_); }
  Index flops() const override { return 2 * members_ * units_ * inputs_; }

 private:
  static ConstMatrix as_const(const Matrix& m) { return {m.data(), m.rows(), m.cols()}; }

  Index units_;
  std::optional<Initialiser> init_;
  Index members_ = 0;
  Index inputs_ = 0;
  Range weight_;
  Range in_;
  Range out_;
  Range bias_;
};

}  // namespace

LayerEntry tabm_dense_entry() {
  return {
      .name = "tabm_dense",
      .signature = "tabm_dense(units, init=WORD)",
      .help =
          "inside an ensemble (tabm): y = ((x * r) W^T) * s + b, where all members share W and each has its "
          "own r, s and b; init as for dense",
      .example = "tabm_dense(5)",
      .example_input = {{4}},
      .make = [](TermArguments& arguments) { return std::make_unique<TabMDense>(arguments); }};
}

}  // namespace lockstep
