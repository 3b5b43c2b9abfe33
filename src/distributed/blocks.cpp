#include "lockstep/distributed/blocks.h"

#include <algorithm>
#include <numeric>

#include "lockstep/math/kernels.h"

namespace lockstep {

BlockGrid::BlockGrid(const Layout& layout, Grain grain) : grain_(grain) {
  for (const ParamInfo& param : layout.params) {
    const Index first = count();
    const Index stride = grain == Grain::kBlock ? kSquareBlock : param.range.size();
    for (Index begin = param.range.begin; begin < param.range.end; begin += stride) {
      begins_.push_back(begin);
    }
    params_.push_back({first, count()});
  }
}

Range BlockGrid::inside(Range arena) const {
  const auto offset = [this](Index at) {
    return static_cast<Index>(std::ranges::lower_bound(begins_, at) - begins_.begin());
  };
  return {offset(arena.begin), offset(arena.end)};
}

namespace {

// Rank after rank takes tensors while more than half of the next one fits below what all would have if they
// could be cut anywhere; the last takes what is left.
std::vector<Range> tensor_slices(const BlockGrid& grid, Range range, std::span<Index> loads) {
  const Range blocks = grid.inside(range);
  const auto border = [&](Index block) { return block < blocks.end ? grid.begin(block) : range.end; };
  const Index all = std::accumulate(loads.begin(), loads.end(), range.size());
  const Index even = all / std::ssize(loads);
  std::vector<Range> slices;
  Index block = blocks.begin;
  for (std::size_t rank = 0; rank < loads.size(); ++rank) {
    const Index begin = border(block);
    for (; block < blocks.end; ++block) {
      const Index size = border(block + 1) - border(block);
      if (rank + 1 < loads.size() && loads[rank] + size / 2 > even) break;
      loads[rank] += size;
    }
    slices.push_back({begin, border(block)});
  }
  return slices;
}

}  // namespace

std::vector<Range> owner_slices(const BlockGrid& grid, Range range, Index world) {
  std::vector<Index> loads(static_cast<std::size_t>(world));
  return owner_slices(grid, range, loads);
}

std::vector<Range> owner_slices(const BlockGrid& grid, Range range, std::span<Index> loads) {
  const Index world = std::ssize(loads);
  if (grid.grain() == Grain::kTensor) return tensor_slices(grid, range, loads);
  const Range blocks = grid.inside(range);
  const auto border = [&](Index block) { return block < blocks.end ? grid.begin(block) : range.end; };
  std::vector<Range> slices;
  for (Index rank = 0; rank < world; ++rank) {
    const Range mine = split_evenly(blocks.size(), world, rank);
    slices.push_back({border(blocks.begin + mine.begin), border(blocks.begin + mine.end)});
    at(loads, rank) += slices.back().size();
  }
  return slices;
}

}  // namespace lockstep
