// y = x W^T + b. In bf16 x, W and dy are rounded, and nothing else. With shared=K the equal parts of a sample
// are K rows of the product.
//
// With split=rows the product is computed in fixed blocks of output units (split_layer.h). Outputs of a block
// are a matrix of their own. Its rows are copied to their columns of y, as rows of dy are gathered from
// there.
#include <algorithm>

#include "layer_parts.h"
#include "lockstep/math/fixed_tree.h"
#include "lockstep/nn/split_layer.h"

namespace lockstep {
namespace {

// The arguments, tensors and shapes of dense layers; how they multiply is theirs.
class DenseLayer : public Layer {
 public:
  explicit DenseLayer(TermArguments& arguments)
      : units_(arguments.take_index("units", 1)),
        shared_(whole_number("shared", arguments.take_word("shared", "1"), 1, "")),
        init_(arguments),
        has_bias_(arguments.take_flag("bias", true)),
        tie_(arguments.take_word("tie", "")) {
    error_if(init_.given() && !tie_.empty(), "a shared weight has the init of its owner: leave out init");
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const std::optional<ImageShape> image = as_image(inputs.front());
    error_if(image && image->channels > 1 && image->pixels() > 1,
             "an image with channels has to become a vector first: put flatten before it");
    const Index size = inputs.front().size();
    error_if(size % shared_ != 0, "shared={} does not divide {} inputs into equal parts", shared_, size);
    inputs_ = size / shared_;
    precision_ = params.precision();
    const Shape shape{{units_, inputs_}};
    weight_ = !tie_.empty()
                  ? params.tie(tie_, shape)
                  : params.declare(init_.of(
                        params, {.name = "weight", .shape = shape, .fan_in = inputs_, .fan_out = units_}));
    if (has_bias_) bias_ = params.declare({.name = "bias", .shape = {{units_}}, .decays = false});
    return {.out = {{shared_ * units_}},
            .flops = 2 * shared_ * units_ * inputs_,
            .weight_use = in_bf16() ? WeightUse{.rounded = weight_}
                                    : WeightUse{.factored = shared_ > 1 ? Range{} : weight_}};
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const auto in_rows = [&](const std::string& value, Index width) {
      return shared_ == 1 ? value : graph.reshape(value, {-1, width});
    };
    const std::string x = in_rows(onnx_flat(graph, layer.inputs.front(), layer.in.front()), inputs_);
    const std::string y = graph.add("Gemm", joined_names({x}, layer.tensors), {{"transB", Index{1}}});
    return in_rows(y, shared_ * units_);
  }

 protected:
  // The parts of all samples, one a row.
  template <class T>
  MatrixView<T> parts_of(T* values, Index samples, Index width) const {
    return {values, samples * shared_, width};
  }
  bool in_bf16() const { return precision_ == Precision::kBf16; }
  bool is_tied() const { return !tie_.empty(); }
  bool has_bias() const { return has_bias_; }

  // The weights that a pass computes with.
  std::span<const Scalar> exact_weight(const PassArgs& args) const {
    return is_tied() ? args.tied.exact : part(args.weights, weight_);
  }
  std::span<const Bf16> rounded_weight(const PassArgs& args) const {
    return is_tied() ? args.tied.rounded : part(args.rounded, weight_);
  }

  Index units_;
  Index shared_;  // parts of a sample
  Index inputs_ = 0;
  Range weight_;
  Range bias_;

 private:
  InitArgument init_;
  bool has_bias_;
  std::string tie_;
  Precision precision_ = Precision::kFp32;
};

// Work between two pauses in the backward pass: about 10 ms of a fast core; twice that where each piece packs
// all weights anew.
constexpr Index kWeightsPieceFlops = Index{1} << 31;
constexpr Index kDataPieceFlops = 2 * kWeightsPieceFlops;

class Dense final : public DenseLayer {
 public:
  using DenseLayer::DenseLayer;

  void forward(const ForwardArgs& args) const override {
    const std::span<const Scalar> bias = part(args.weights, bias_);
    const ConstMatrix x = parts_of(args.x().data(), args.y.rows(), inputs_);
    Matrix y = parts_of(args.y.data(), args.y.rows(), units_);
    if (in_bf16()) {
      multiply_forward(rounded_input(x), as_matrix(rounded_weight(args), units_, inputs_), bias, y);
    } else {
      multiply_forward(x, as_matrix(exact_weight(args), units_, inputs_), bias, y);
    }
  }

  void backward(const BackwardArgs& args) const override {
    // The bias, which lies behind the weights, comes first, so that the gradient is final from its end on.
    const ConstMatrix x = parts_of(args.x().data(), args.dy.rows(), inputs_);
    const ConstMatrix dy = parts_of(args.dy.data(), args.dy.rows(), units_);
    if (has_bias()) sum_rows(dy, part(args.gradient, bias_), args.write);
    if (in_bf16()) {
      const Bf16Matrix rounded_dy = rounded_output_gradient(dy);
      backward_weights(args, rounded_dy, rounded_input(x));
      backward_data(args, rounded_dy, as_matrix(rounded_weight(args), units_, inputs_));
    } else {
      if (args.factors != nullptr) {
        leave_factors(*args.factors, dy, x);
      } else {
        backward_weights(args, dy, x);
      }
      backward_data(args, dy, as_matrix(exact_weight(args), units_, inputs_));
    }
  }

 private:
  // A product is cut into pieces of so many rows, each of whole blocks of kernels: how depends on the batch
  // of the replica alone, and so do the bits.
  static Index rows_of_piece(Index flops, Index flops_of_row) {
    constexpr Index kRowsOfBlock = 64;
    return round_up(std::max<Index>(flops / flops_of_row, 1), kRowsOfBlock);
  }

  static void leave_factors(const FactorBuffers& to, const ConstMatrix& dy, const ConstMatrix& x) {
    std::ranges::copy(x.values(), to.x);
    transpose(dy, to.dy_t, to.stride);
  }

  template <class Operand>
  void backward_weights(const BackwardArgs& args, const Operand& dy, const Operand& x) const {
    Matrix dweight =
        as_matrix(is_tied() ? args.tied_gradient : part(args.gradient, weight_), units_, inputs_);
    const Index flops_of_row = 2 * inputs_ * std::max<Index>(dy.rows(), 1);
    const Index rows = rows_of_piece(kWeightsPieceFlops, flops_of_row);
    for (Index end = units_; end > 0; end = std::max<Index>(end - rows, 0)) {
      const Index begin = std::max<Index>(end - rows, 0);
      multiply_backward_weights(dy, x, {begin, end}, dweight, is_tied() ? Write::kReplace : args.write);
      args.on_ready(own_begin(begin * inputs_));
    }
  }

  template <class Operand>
  void backward_data(const BackwardArgs& args, const Operand& dy, const Operand& weight) const {
    if (args.dx() == nullptr) return;
    Matrix dx = parts_of(args.dx()->data(), args.dx()->rows(), inputs_);
    const Index rows = rows_of_piece(kDataPieceFlops, 2 * units_ * inputs_);
    for (Index begin = 0; begin < dx.rows(); begin += rows) {
      const Range piece{begin, std::min(begin + rows, dx.rows())};
      Matrix dx_rows(dx.data() + begin * inputs_, piece.size(), inputs_);
      multiply_backward_data(rows_of(dy, piece), weight, dx_rows);
      args.on_ready(own_begin(0));
    }
  }

  // The offset from which the gradients of its own tensors are final, if those of its weight are so from
  // `offset` on.
  Index own_begin(Index offset) const { return is_tied() ? bias_.begin : weight_.begin + offset; }
};

class SplitDense final : public DenseLayer, public SplitLayer {
 public:
  explicit SplitDense(TermArguments& arguments) : DenseLayer(arguments) {
    if (is_tied()) throw ConfigError("a shared weight is computed as that of its owner: leave out split");
    if (shared_ > 1) throw ConfigError("a weight that parts of a sample share is small: leave out split");
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    LayerTraits traits = DenseLayer::declare(inputs, params);
    traits.weight_use.factored = {};
    blocks_ = UnitBlocks(units_, inputs_);
    return traits;
  }

  void forward(const ForwardArgs& args) const override {
    const Index rows = args.y.rows();
    const BlockBegins begins = find_outputs(args.x());
    Scalar* const memory = layer_scratch(rows * largest_block());
    for (Index block = 0; block < blocks_.count(); ++block) {
      const BlockOutputs<Scalar> one{begins, {block, block + 1}, rows, memory};
      forward_blocks(args.x(), {args.weights, args.rounded}, one);
      scatter(args.x(), one.as_const(), args.y);
    }
  }

  void backward(const BackwardArgs& args) const override {
    // The bias, which lies behind the weights, comes first, so that the gradient is final from its end on.
    backward_bias(args.dy, args.gradient, args.write);
    const Index rows = args.dy.rows();
    const Index spare = spare_for_tree(blocks_.count(), rows * inputs_);
    Scalar* const memory = layer_scratch(rows * units_ + spare);
    const BlockBegins begins = find_outputs(args.x());
    const BlockOutputs<Scalar> outputs{begins, blocks_.all(), rows, memory};
    gather(args.x(), args.dy, outputs);
    const BlockOutputs<const Scalar> dy = outputs.as_const();
    for (Index block = blocks_.count() - 1; block >= 0; --block) {
      const Range weights = weights_of({block, block + 1});
      backward_weights(args.x(), dy, block, part(args.gradient, weights), args.write);
      args.on_ready(weights.begin);
    }
    if (args.dx() == nullptr) return;
    backward_data(dy, {args.weights, args.rounded}, blocks_.all(),
                  {.sum = {args.dx()->data(), static_cast<std::size_t>(args.dx()->size())},
                   .spare = {memory + rows * units_, static_cast<std::size_t>(spare)},
                   .pause = [&] { args.on_ready(weight_.begin); }});
  }

  const SplitLayer* split() const override { return this; }
  const UnitBlocks& blocks() const override { return blocks_; }
  Range weights_of(Range blocks) const override {
    const Range units = blocks_.units(blocks);
    return {weight_.begin + units.begin * inputs_, weight_.begin + units.end * inputs_};
  }

  BlockBegins find_outputs(const ConstMatrix& x) const override {
    BlockBegins begins{};
    for (Index block = 0; block < blocks_.count(); ++block) {
      at(begins, block + 1) = x.rows() * blocks_.units(block).end;
    }
    return begins;
  }
  Index max_outputs(Index rows, Range blocks) const override { return rows * blocks_.units(blocks).size(); }
  // A block has a matrix, whose columns are some of y.
  void scatter(const ConstMatrix& /*x*/, const BlockOutputs<const Scalar>& from, Matrix& y) const override {
    for (Index block = from.blocks.begin; block < from.blocks.end; ++block) {
      const Range units = blocks_.units(block);
      const Scalar* source = from.of(block);
      for (Index row = 0; row < from.rows; ++row) {
        std::copy_n(source + row * units.size(), units.size(), y.data() + row * y.cols() + units.begin);
      }
    }
  }
  void gather(const ConstMatrix& /*x*/, const ConstMatrix& y, const BlockOutputs<Scalar>& to) const override {
    for (Index block = to.blocks.begin; block < to.blocks.end; ++block) {
      const Range units = blocks_.units(block);
      Scalar* target = to.of(block);
      for (Index row = 0; row < to.rows; ++row) {
        std::copy_n(y.data() + row * y.cols() + units.begin, units.size(), target + row * units.size());
      }
    }
  }
  bool has_input_gradient() const override { return true; }

  void forward_blocks(const ConstMatrix& x, const SplitWeights& weights,
                      const BlockOutputs<Scalar>& y) const override {
    for (Index block = y.blocks.begin; block < y.blocks.end; ++block) {
      const Range units = blocks_.units(block);
      const std::span<const Scalar> bias =
          has_bias() ? part(part(weights.exact, bias_), units) : std::span<const Scalar>();
      Matrix outputs(y.of(block), y.rows, units.size());
      if (in_bf16()) {
        multiply_forward(rounded_input(x), of_block(weights.rounded, block), bias, outputs);
      } else {
        multiply_forward(x, of_block(weights.exact, block), bias, outputs);
      }
    }
  }

  void backward_bias(const ConstMatrix& dy, std::span<Scalar> gradient, Write write) const override {
    if (has_bias()) sum_rows(dy, part(gradient, bias_), write);
  }

  void backward_weights(const ConstMatrix& x, const BlockOutputs<const Scalar>& dy, Index block,
                        std::span<Scalar> sum, Write write) const override {
    const Index units = blocks_.units(block).size();
    const ConstMatrix of_outputs(dy.of(block), dy.rows, units);
    Matrix dweight = as_matrix(sum, units, inputs_);
    if (in_bf16()) {
      multiply_backward_weights(rounded_output_gradient(of_outputs), rounded_input(x), {0, units}, dweight,
                                write);
    } else {
      multiply_backward_weights(of_outputs, x, {0, units}, dweight, write);
    }
  }

  void backward_data(const BlockOutputs<const Scalar>& dy, const SplitWeights& weights, Range subtree,
                     const DataSum& to) const override {
    sum_along_tree(subtree, to.sum, to.spare, [&](Index block, std::span<Scalar> term) {
      const ConstMatrix of_outputs(dy.of(block), dy.rows, blocks_.units(block).size());
      Matrix dx = as_matrix(term, dy.rows, inputs_);
      if (in_bf16()) {
        multiply_backward_data(rounded_output_gradient(of_outputs), of_block(weights.rounded, block), dx);
      } else {
        multiply_backward_data(of_outputs, of_block(weights.exact, block), dx);
      }
      if (to.pause) to.pause();
      return true;
    });
  }

 private:
  ConstMatrix of_block(std::span<const Scalar> weights, Index block) const {
    return as_matrix(part(weights, weights_of({block, block + 1})), blocks_.units(block).size(), inputs_);
  }
  Bf16Matrix of_block(std::span<const Bf16> weights, Index block) const {
    return as_matrix(part(weights, weights_of({block, block + 1})), blocks_.units(block).size(), inputs_);
  }

  Index largest_block() const {
    Index most = 0;
    for (Index block = 0; block < blocks_.count(); ++block)
      most = std::max(most, blocks_.units(block).size());
    return most;
  }

  UnitBlocks blocks_;
};

std::unique_ptr<Layer> make_dense(TermArguments& arguments) {
  if (takes_split(arguments)) return std::make_unique<SplitDense>(arguments);
  return std::make_unique<Dense>(arguments);
}

}  // namespace

LayerEntry dense_entry() {
  return {
      .name = "dense",
      .signature = "dense(units, shared=1, init=WORD, bias=true, tie=LAYER, split=rows)",
      .help =
          "y = x W^T + b; shared=K: of each of K equal parts of x, with the same W and b; init: he, xavier, "
          "normal, normal(deviation) or zero for this layer; tie: the number of an earlier layer whose "
          "weight, of the same shape, is this one's too; split=rows computes a wide layer in fixed blocks of "
          "its units",
      .example = "dense(5)",
      .example_input = {{6}},
      .make = make_dense};
}

}  // namespace lockstep
