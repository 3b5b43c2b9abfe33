// The place of each rank where the model is divided: its stage, and its group of ranks that have all stages.
#pragma once

#include <span>
#include <vector>

#include "lockstep/distributed/options.h"

namespace lockstep {

class StageGrid {
 public:
  /// Requires that `stages` divides `ranks`.
  StageGrid(Index ranks, Index stages, StagePlacement placement)
      : stages_(stages), groups_(ranks / stages), placement_(placement) {}

  Index stages() const { return stages_; }
  Index groups() const { return groups_; }
  /// Within a group the stages are in the order of the ranks; of a stage, so are the groups.
  Index stage_of(Index rank) const { return neighbours() ? rank % stages_ : rank / groups_; }
  Index group_of(Index rank) const { return neighbours() ? rank / stages_ : rank % groups_; }
  Index rank_of(Index group, Index stage) const {
    return neighbours() ? group * stages_ + stage : stage * groups_ + group;
  }
  /// The ranks that follow one another in a group, or in a stage.
  Index neighbouring_ranks() const { return neighbours() ? stages_ : groups_; }

  /// The workers of `stage` on each node that has any, in order. `nodes`: ranks of each node, in order.
  std::vector<Index> workers_on_nodes(std::span<const Index> nodes, Index stage) const;

 private:
  bool neighbours() const { return placement_ == StagePlacement::kNeighbours; }

  Index stages_;
  Index groups_;
  StagePlacement placement_;
};

}  // namespace lockstep
