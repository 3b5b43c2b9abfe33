#include "id_set.h"

namespace lockstep {

IdSet::IdSet(Index rows, const std::function<bool(Index)>& wanted)
    : blocks_(static_cast<std::size_t>((rows + 63) / 64)) {
  for (Index id = 0; id < rows; ++id) {
    Block& block = at(blocks_, id / 64);
    if (id % 64 == 0) block.before = size_;
    if (!wanted(id)) continue;
    block.members |= std::uint64_t{1} << (id % 64);
    ++size_;
  }
}

}  // namespace lockstep
