// An exchange algorithm: how the sum of the gradients gets to every rank, where every rank gets the whole of
// it and numbers are sent as they are.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/exchange/costs.h"
#include "lockstep/distributed/exchange/reducer.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"

namespace lockstep {

/// How the ranks lie on nodes.
struct Nodes {
  Index count = 1;
  Index largest = 1;       ///< ranks
  bool neighbours = true;  ///< the ranks of each node follow each other
};

/// *Collective.* With `ranks_per_node` > 0 nodes are taken for so small.
Nodes look_at_nodes(Communicator& comm, Index ranks_per_node);

/// *Collective.* The ranks of each node, ordered by its first one; `ranks_per_node` as above.
std::vector<Index> node_sizes(Communicator& comm, Index ranks_per_node);

/// The sizes of planned nodes, all full but for the last. `ranks_per_node` 0: all ranks are on one.
std::vector<Index> full_nodes(Index world, Index ranks_per_node);

/// The parts of an exchange. References outlive it.
struct AlgorithmContext {
  Communicator& comm;
  const Plan& plan;
  Reduction reduction = Reduction::kNative;
  Index gradient_arenas = 1;  ///< arenas that this rank takes, at most
  Index ranks_per_node = 0;   ///< nodes are taken for so small; 0: as they are
  bool overlaps = true;       ///< buckets travel while something else goes on
};

/// The costs of one rank, in bytes.
struct AlgorithmCosts {
  Index held = 0;        ///< beside the gradients themselves
  Index sent = 0;        ///< per exchange
  Traffic traffic = {};  ///< of an exchange of all buckets
};

struct AlgorithmEntry {
  std::string name;
  std::string help;
  bool keeps_order = false;     ///< can add along the fixed tree: the same bits, whichever of these it is
  bool in_node_memory = false;  ///< gradients lie in memory that the ranks of a node share
  /// Whether it can give what the reduction promises.
  bool allows(Reduction reduction) const { return reduction == Reduction::kNative || keeps_order; }
  /// Native buckets are a nonblocking collective of the MPI library each, several under way at a time: one
  /// alone is as fast as others, but with backward going on they were slower than no overlap at all.
  bool suffers_from_overlap = false;
  /// Why it cannot run on these nodes, and what to do instead; "" if it can.
  std::function<std::string(const Nodes&)> refusal;
  /// *Collective.* Every rank gets the whole sum.
  std::function<std::unique_ptr<Reducer>(const AlgorithmContext&)> make;
  std::function<AlgorithmCosts(const CostModelInput&, Index rank)> costs;
};

/// Every algorithm there is. To add one: src/README.md.
std::span<const AlgorithmEntry> algorithm_catalog();

/// The name that stands for a choice among them.
inline constexpr const char* kAutoAlgorithm = "auto";

}  // namespace lockstep
