// Who owns what where ranks of a node share memory: one slice of the arena for each of them, the same on all
// nodes.
#pragma once

#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/dist/plan.h"

namespace lockstep {

struct NodeLayout {
  std::vector<Range> hosted;  ///< by rank of the node: its replicas
  Range replicas;             ///< of the whole node
  Range slice;                ///< of the gradient arena that this rank owns; may be empty
  Plan across;                ///< of the exchange of that slice, between nodes as its ranks
};

/// *Collective* over `comm`. Errors: ConfigError on all ranks if the replicas of a node are not neighbours.
NodeLayout lay_out_node(Communicator& comm, Communicator& node, Communicator& across, const Plan& plan,
                        const Layout& layout);

}  // namespace lockstep
