// The arena cut into blocks, each inside one tensor: the grain in which weights have owners. Norms over
// weights of several owners are sums over blocks in order, so they have the same bits whoever owns what.
#pragma once

#include <span>
#include <vector>

#include "lockstep/nn/params.h"

namespace lockstep {

/// How large blocks are: kSquareBlock, or whole tensors for owners who need one, or its norm, by themselves.
enum class Grain { kBlock, kTensor };

class BlockGrid {
 public:
  explicit BlockGrid(const Layout& layout, Grain grain = Grain::kBlock);

  Grain grain() const { return grain_; }
  Index count() const { return std::ssize(begins_); }
  /// The offset at which a block begins in the arena.
  Index begin(Index block) const { return at(begins_, block); }
  /// The blocks of a tensor, by its offset in the layout.
  Range of_param(std::size_t param) const { return params_[param]; }
  /// The blocks that begin in a range of the arena.
  Range inside(Range arena) const;

 private:
  Grain grain_;
  std::vector<Index> begins_;
  std::vector<Range> params_;
};

/// Cuts `range` of the arena (whole blocks) into a contiguous slice for each rank, at borders of blocks and
/// as evenly as these allow; the last non-empty slice goes to the end of the range. With fewer blocks than
/// ranks some slices are empty.
std::vector<Range> owner_slices(const BlockGrid& grid, Range range, Index world);
/// Cuts one range after another: whole tensors go to ranks that have less so far. `loads`: by rank, the
/// numbers that it has; those of its slice are added.
std::vector<Range> owner_slices(const BlockGrid& grid, Range range, std::span<Index> loads);

}  // namespace lockstep
