// Convolution as a product of matrices (im2col): the patch of the input under the window at each position
// becomes a row, and output = patches * weights^T. This lays out patches and weights for one group of
// channels of a block of samples.
#pragma once

#include <span>

#include "lockstep/base/types.h"
#include "lockstep/math/convolution.h"

namespace lockstep {

/// Neighbouring samples, and one group of channels, whose patches are in memory together.
struct PatchBlock {
  Index first_row = 0;
  Index rows = 0;
  Index group = 0;
};

/// How patches are laid out: (rows of the block x positions) x (height x width x channels of one group).
class PatchLayout {
 public:
  explicit PatchLayout(const ConvolutionShape& shape);

  Index positions() const { return positions_; }
  Index patch() const { return shape_.fan_in(); }
  Index group_out() const { return shape_.out_channels / shape_.groups; }

  /// The most rows of a block: so many that its patches fit into a second-level cache.
  Index block_rows() const { return block_rows_; }
  /// Scalars of the patches of the largest block.
  Index size() const { return block_rows_ * positions_ * patch(); }

  /// patches = what is under the window in x; 0 in the padding
  void gather(const PatchBlock& block, const ConstMatrix& x, Scalar* patches) const;
  /// dx += each patch, where it came from
  void scatter_add(const PatchBlock& block, const Scalar* patches, Matrix& dx) const;

  /// Weights in the order of a patch, [out][height][width][in], from the order of the arena.
  void arrange(std::span<const Scalar> weights, Scalar* arranged) const;
  /// weights (+)= arranged, back in the order of the arena
  void restore(const Scalar* arranged, std::span<Scalar> weights, Write write) const;

 private:
  template <class Visit>
  void walk_patches(Index group, const Visit& visit) const;
  template <class Visit>
  void walk_weights(const Visit& visit) const;

  ConvolutionShape shape_;
  Index positions_;
  Index block_rows_;
};

// Memory that a kernel needs during one call: kept by each thread and only grown, so a step after the first
// allocates nothing.

enum class ScratchUse { kPatches, kWeights, kWide, kOtherWide };

/// At least `size` scalars with any content; valid until the next call for the same use in this thread.
Scalar* scratch(ScratchUse use, Index size);

}  // namespace lockstep
