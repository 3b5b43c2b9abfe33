// The end of an ensemble: each member has an output layer of its own, y[m] = x[m] W[m]^T + bias[m]. The
// samples of a member are gathered, so that each member is one product.
#include "init_argument.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/nn/ensemble.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/onnx_words.h"
#include "members.h"
#include "scratch.h"

namespace lockstep {
namespace {

// The vectors of one member, out of those of all, or back.
using Strided = Eigen::Map<RowMajorMatrix, 0, Eigen::OuterStride<>>;
using ConstStrided = Eigen::Map<const RowMajorMatrix, 0, Eigen::OuterStride<>>;

class TabMHeads final : public Layer, public OnnxWords, public EnsembleLayer {
 public:
  explicit TabMHeads(TermArguments& arguments)
      : units_(arguments.take_index("units", 1)), init_(take_initialiser(arguments)) {}

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    members_ = members_of(inputs.front());
    inputs_ = inputs.front().dims[1];
    weight_ = params.declare({.name = "weight",
                              .shape = {{members_, units_, inputs_}},
                              .initialiser = init_.value_or(params.default_initialiser()),
                              .fan_in = inputs_,
                              .fan_out = units_});
    bias_ = params.declare({.name = "bias", .shape = {{members_, units_}}, .decays = false});
    return {{members_, units_}};
  }

  void forward(const ForwardArgs& args) const override {
    const Index rows = args.y.rows();
    Scalar* const scratch = layer_scratch(rows * (inputs_ + units_));
    Matrix x(scratch, rows, inputs_);
    Matrix y(scratch + rows * inputs_, rows, units_);
    for (Index m = 0; m < members_; ++m) {
      as_eigen(x) = of_member(args.x().data(), m, rows, inputs_);
      multiply_forward(x, weight_of(args.weights, m), part(args.weights, bias_of(m)), y);
      Strided(args.y.data() + m * units_, rows, units_, Eigen::OuterStride<>(members_ * units_)) =
          as_eigen(y);
    }
  }

  void backward(const BackwardArgs& args) const override {
    const Index rows = args.dy.rows();
    Scalar* const scratch = layer_scratch(rows * (2 * inputs_ + units_));
    Matrix x(scratch, rows, inputs_);
    Matrix dx(scratch + rows * inputs_, rows, inputs_);
    Matrix dy(scratch + 2 * rows * inputs_, rows, units_);
    for (Index m = 0; m < members_; ++m) {
      as_eigen(x) = of_member(args.x().data(), m, rows, inputs_);
      as_eigen(dy) = of_member(args.dy.data(), m, rows, units_);
      sum_rows(dy, part(args.gradient, bias_of(m)), args.write);
      Matrix dweight(args.gradient.data() + weight_.begin + m * units_ * inputs_, units_, inputs_);
      multiply_backward_weights(dy, x, {0, units_}, dweight, args.write);
      if (args.dx() == nullptr) continue;
      multiply_backward_data(dy, weight_of(args.weights, m), dx);
      Strided(args.dx()->data() + m * inputs_, rows, inputs_, Eigen::OuterStride<>(members_ * inputs_)) =
          as_eigen(dx);
    }
  }

  EnsemblePart ensemble_part() const override { return EnsemblePart::kEnd; }
  Operation operation() const override { return {.name = "tabm_heads", .tensors = {weight_, bias_}}; }
  // From [N, 1, members, inputs] to [N, members, 1, inputs] and back, as MatMul takes the members one by one.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::vector<Index> turned{0, 2, 1, 3};
    const std::string x = graph.add("Transpose", {layer.inputs.front()}, {{"perm", turned}});
    const std::string weight =
        graph.add("Transpose", {layer.tensors[0]}, {{"perm", std::vector<Index>{0, 2, 1}}});
    const std::string bias = graph.add("Reshape", {layer.tensors[1], graph.add_list({members_, 1, units_})});
    const std::string y = graph.add("Add", {graph.add("MatMul", {x, weight}), bias});
    return graph.add("Transpose", {y}, {{"perm", turned}});
  }
  Index flops() const override { return 2 * members_ * units_ * inputs_; }

 private:
  ConstStrided of_member(const Scalar* all, Index m, Index rows, Index size) const {
    return {all + m * size, rows, size, Eigen::OuterStride<>(members_ * size)};
  }
  ConstMatrix weight_of(std::span<const Scalar> weights, Index m) const {
    return {weights.data() + weight_.begin + m * units_ * inputs_, units_, inputs_};
  }
  Range bias_of(Index m) const { return {bias_.begin + m * units_, bias_.begin + (m + 1) * units_}; }

  Index units_;
  std::optional<Initialiser> init_;
  Index members_ = 0;
  Index inputs_ = 0;
  Range weight_;
  Range bias_;
};

}  // namespace

LayerEntry tabm_heads_entry() {
  return {.name = "tabm_heads",
          .signature = "tabm_heads(units, init=WORD)",
          .help =
              "ends an ensemble (tabm), as the last layer: each member has outputs of its own, training "
              "takes the mean of their losses, and the prediction is the mean of theirs (of probabilities)",
          .example = "tabm_heads(2)",
          .example_input = {{4}},
          .make = [](TermArguments& arguments) { return std::make_unique<TabMHeads>(arguments); }};
}

}  // namespace lockstep
