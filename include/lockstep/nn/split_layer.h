// A layer whose output units are computed in fixed *blocks* (tensor parallel, model parallel inside a layer).
// The blocks follow from the shape of the layer alone, so all products have the same operands on any number
// of ranks, whoever computes them: y_b = x W_b^T + bias_b, dW_b = dy_b^T x, and dx is the sum of all
// dy_b W_b along the fixed tree over the blocks.
#pragma once

#include <functional>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/bf16.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

/// The blocks of the output units of a layer.
class UnitBlocks {
 public:
  static constexpr Index kMaxBlocks = 16;

  UnitBlocks() = default;
  /// At most kMaxBlocks, as equal as their borders allow: a block begins where a block of kSquareBlock
  /// weights does, so that norms of the weights can be added block by block.
  UnitBlocks(Index units, Index inputs);

  Index count() const { return count_; }
  Range all() const { return {0, count_}; }
  Range units(Index block) const { return {begin_of(block), begin_of(block + 1)}; }
  Range units(Range blocks) const { return {begin_of(blocks.begin), begin_of(blocks.end)}; }

 private:
  Index begin_of(Index block) const;

  Index units_ = 0;
  Index grain_ = 1;   // units
  Index grains_ = 0;  // the last may be shorter
  Index count_ = 0;
};

/// The outputs of neighbouring blocks for n samples, or the gradients of these outputs: the matrices of the
/// blocks (n x units of the block), one after the other.
template <class T>
struct BlockOutputs {
  const UnitBlocks& layout;
  Range blocks;
  Index rows = 0;
  T* data = nullptr;

  /// Requires that `blocks` contains it.
  T* of(Index block) const { return data + rows * (layout.units(block).begin - layout.units(blocks).begin); }
  /// To be read only.
  BlockOutputs<const T> as_const() const { return {layout, blocks, rows, data}; }
};

/// Copies outputs of blocks to their columns of y (n x units).
void scatter_blocks(const BlockOutputs<const Scalar>& from, Matrix& y);
/// Copies the columns of y that these blocks have.
void gather_blocks(const ConstMatrix& y, const BlockOutputs<Scalar>& to);

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

  /// Outputs, bias and all, of the blocks of y for the samples x (n x inputs).
  virtual void forward_blocks(const ConstMatrix& x, const SplitWeights& weights,
                              const BlockOutputs<Scalar>& y) const = 0;
  /// The part of the gradient (an arena) that does not belong to single blocks; dy: n x units.
  virtual void backward_bias(const ConstMatrix& dy, std::span<Scalar> gradient, Write write) const = 0;
  /// The gradient of the weights of one block.
  virtual void backward_weights(const ConstMatrix& x, const BlockOutputs<const Scalar>& dy, Index block,
                                std::span<Scalar> sum, Write write) const = 0;
  /// The gradient of the inputs, as far as it comes from a subtree of the fixed tree over the blocks.
  virtual void backward_data(const BlockOutputs<const Scalar>& dy, const SplitWeights& weights, Range subtree,
                             const DataSum& to) const = 0;
};

}  // namespace lockstep
