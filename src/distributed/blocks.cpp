#include "lockstep/distributed/blocks.h"

#include <algorithm>

#include "lockstep/math/kernels.h"

namespace lockstep {

BlockGrid::BlockGrid(const Layout& layout, Grain grain) {
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

std::vector<Range> owner_slices(const BlockGrid& grid, Range range, Index world) {
  const Range blocks = grid.inside(range);
  const auto border = [&](Index block) { return block < blocks.end ? grid.begin(block) : range.end; };
  std::vector<Range> slices;
  for (Index rank = 0; rank < world; ++rank) {
    const Range mine = split_evenly(blocks.size(), world, rank);
    slices.push_back({border(blocks.begin + mine.begin), border(blocks.begin + mine.end)});
  }
  return slices;
}

}  // namespace lockstep
