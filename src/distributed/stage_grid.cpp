#include "lockstep/distributed/stage_grid.h"

namespace lockstep {

std::vector<Index> StageGrid::workers_on_nodes(std::span<const Index> nodes, Index stage) const {
  std::vector<Index> workers;
  Index rank = 0;
  for (const Index ranks : nodes) {
    Index count = 0;
    for (const Index end = rank + ranks; rank < end; ++rank) count += stage_of(rank) == stage ? 1 : 0;
    if (count > 0) workers.push_back(count);
  }
  return workers;
}

}  // namespace lockstep
