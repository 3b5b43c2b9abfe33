// dense(units, split=rows): the product of a dense layer in fixed blocks of output units; see split_layer.h.
// Outputs of a block are a matrix of their own. Its rows are copied to their columns of y, as rows of dy are
// gathered from there.
#include <algorithm>

#include "bf16_operands.h"
#include "dense_layer.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/fixed_tree.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/split_layer.h"
#include "scratch.h"

namespace lockstep {
namespace {

class SplitDense final : public DenseLayer, public SplitLayer {
 public:
  explicit SplitDense(TermArguments& arguments) : DenseLayer(arguments) {
    if (is_tied()) throw ConfigError("a shared weight is computed as that of its owner: leave out split");
  }

  Shape declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    Shape output = DenseLayer::declare(inputs, params);
    blocks_ = UnitBlocks(units_, inputs_);
    return output;
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

  WeightUse weight_use() const override { return {.rounded = in_bf16() ? weight_ : Range{}}; }

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

}  // namespace

std::unique_ptr<Layer> make_split_dense(TermArguments& arguments) {
  return std::make_unique<SplitDense>(arguments);
}

}  // namespace lockstep
