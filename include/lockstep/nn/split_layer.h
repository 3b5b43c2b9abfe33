// A layer whose weights lie in fixed *blocks* of their rows (tensor parallel, model parallel inside a layer).
// The blocks follow from the shape of the layer alone, so all numbers have the same operands on any number
// of ranks, whoever computes them.
//
// A dense layer has a row for each output unit: y_b = x W_b^T + bias_b, dW_b = dy_b^T x, and dx is the sum of
// all dy_b W_b along the fixed tree over the blocks. An embedding has a row for each category: the outputs of
// a block are the rows that the samples name, and it depends on the samples how many those are.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

/// The blocks of the rows of a layer's weight, its *units*.
class UnitBlocks {
 public:
  static constexpr Index kMaxBlocks = 16;

  UnitBlocks() = default;
  /// At most kMaxBlocks, as equal as their borders allow: a block begins where a block of kSquareBlock
  /// weights does, so that norms of the weights can be added block by block.
  UnitBlocks(Index units, Index inputs)
      : units_(units),
        grain_(kSquareBlock / std::gcd(inputs, kSquareBlock)),
        grains_(divide_up(units, grain_)),
        count_(std::min(grains_, kMaxBlocks)) {}

  Index count() const { return count_; }
  Range all() const { return {0, count_}; }
  Range units(Index block) const { return {begin_of(block), begin_of(block + 1)}; }
  Range units(Range blocks) const { return {begin_of(blocks.begin), begin_of(blocks.end)}; }
  /// The block that has this unit.
  Index block_of(Index unit) const { return part_of(grains_, count_, unit / grain_); }

 private:
  Index begin_of(Index block) const {
    return block == count_ ? units_ : split_evenly(grains_, count_, block).begin * grain_;
  }

  Index units_ = 0;
  Index grain_ = 1;   // units
  Index grains_ = 0;  // the last may be shorter
  Index count_ = 0;
};

/// The offsets at which the outputs of each block begin among those of all blocks, and the end of the last.
using BlockBegins = std::array<Index, UnitBlocks::kMaxBlocks + 1>;

/// The outputs of neighbouring blocks for n samples, or the gradients of these outputs, one block after the
/// other. Of a dense layer a block has a matrix (n x units of the block), of an embedding the vectors (width)
/// in the order of samples and features.
template <class T>
struct BlockOutputs {
  const BlockBegins& begins;
  Range blocks;
  Index rows = 0;
  T* data = nullptr;

  /// Requires that `blocks` contains it.
  T* of(Index block) const { return data + at(begins, block) - at(begins, blocks.begin); }
  Index size() const { return at(begins, blocks.end) - at(begins, blocks.begin); }
  /// To be read only.
  BlockOutputs<const T> as_const() const { return {begins, blocks, rows, data}; }
};

/// The arena of weights, and the same rounded for a layer in bf16.
struct SplitWeights {
  std::span<const Scalar> exact;
  std::span<const Bf16> rounded;
};

/// Memory for a gradient of the inputs (n x inputs) that is a sum over blocks.
struct DataSum {
  std::span<Scalar> sum;
  std::span<Scalar> spare;           ///< spare_for_tree() of it
  std::function<void()> pause = {};  ///< called after each product; may be empty
};

/// A layer that computes single blocks, for whoever has their weights.
class SplitLayer {
 public:
  virtual ~SplitLayer() = default;
  virtual const UnitBlocks& blocks() const = 0;
  /// The range of the weights of neighbouring blocks in the arena. A bias is not divided.
  virtual Range weights_of(Range blocks) const = 0;

  /// Refuses samples x (n x inputs) that the layer does not take, before others get them. Errors: DataError.
  virtual void check_inputs(const ConstMatrix& /*x*/) const {}
  /// The offsets of the outputs for the samples x.
  virtual BlockBegins find_outputs(const ConstMatrix& x) const = 0;
  /// Numbers that these blocks put out for so many samples, at most.
  virtual Index max_outputs(Index rows, Range blocks) const = 0;
  /// Copies the outputs of blocks to where y (n x outputs of the layer) has them.
  virtual void scatter(const ConstMatrix& x, const BlockOutputs<const Scalar>& from, Matrix& y) const = 0;
  /// Copies what y has of these blocks.
  virtual void gather(const ConstMatrix& x, const ConstMatrix& y, const BlockOutputs<Scalar>& to) const = 0;
  /// Whether there is a gradient of the inputs; it is zero else.
  virtual bool has_input_gradient() const = 0;

  /// Outputs, bias and all, of the blocks of y for the samples x.
  virtual void forward_blocks(const ConstMatrix& x, const SplitWeights& weights,
                              const BlockOutputs<Scalar>& y) const = 0;
  /// The part of the gradient (an arena) that does not belong to single blocks; dy: n x outputs.
  virtual void backward_bias(const ConstMatrix& dy, std::span<Scalar> gradient, Write write) const = 0;
  /// The gradient of the weights of one block.
  virtual void backward_weights(const ConstMatrix& x, const BlockOutputs<const Scalar>& dy, Index block,
                                std::span<Scalar> sum, Write write) const = 0;
  /// The gradient of the inputs, as far as it comes from a subtree of the fixed tree over the blocks.
  virtual void backward_data(const BlockOutputs<const Scalar>& dy, const SplitWeights& weights, Range subtree,
                             const DataSum& to) const = 0;
};

}  // namespace lockstep
