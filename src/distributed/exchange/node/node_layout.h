// Ownership among ranks of a node that share memory: a slice of each bucket for each of them, the same on all
// nodes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/plan.h"

namespace lockstep {

/// Cuts a range of the gradient arena into so many slices.
using Cut = std::function<std::vector<Range>(Range range, Index parts)>;

struct NodeLayout {
  std::vector<Range> hosted;  ///< replicas of each rank of the node
  Range replicas;             ///< replicas of the whole node
  std::vector<Range> slices;  ///< what this rank owns of each bucket; may be empty
  Plan across;                ///< plan for the exchange of those slices, between nodes as its ranks
};

/// How to cut an arena of which several ranks own parts, and over what.
struct NodeCut {
  std::vector<Bucket> buckets;
  Cut cut;
};

/// *Collective* over `comm`. Errors: AgreedError if the ranks of a node are not neighbours, naming `user`.
NodeLayout lay_out_node(Communicator& comm, Communicator& node, Communicator& across, const Plan& plan,
                        const NodeCut& cut, const std::string& user);

/// The plan over `across` for an owner's share of the whole arena, on nodes with so many ranks each, in
/// order. Known before the run.
Plan plan_across(const Plan& plan, std::span<const Index> nodes);

/// The node of a rank, and the rank's number on it.
struct RankOnNode {
  Index node = 0;
  Index rank = 0;
};
RankOnNode find_on_node(std::span<const Index> nodes, Index rank);

/// The first ranks of each node, that own a slice: as many as the smallest node has. The others own nothing.
Index owners_on_node(std::span<const Index> nodes);

}  // namespace lockstep
