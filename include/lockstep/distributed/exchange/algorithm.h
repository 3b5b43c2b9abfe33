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
  std::function<std::unique_ptr<Reducer>(const ExchangeRequest&)> make;
  std::function<AlgorithmCosts(const CostModelInput&, Index rank)> costs;
};

/// Every algorithm there is. To add one: src/README.md.
std::span<const AlgorithmEntry> algorithm_catalog();

/// The name that stands for a choice among them.
inline constexpr const char* kAutoAlgorithm = "auto";

/// The algorithm of `auto` without calibration: memory where ranks share it, else MPI.
const AlgorithmEntry& algorithm_by_rule(const Nodes& nodes);

/// By bucket of the plan.
using AlgorithmChoice = std::vector<const AlgorithmEntry*>;

/// *Collective.* Each bucket by an algorithm of its own, at most one of them in node memory. Errors:
/// AgreedError if one cannot be made.
std::unique_ptr<Reducer> make_bucketwise_reducer(const ExchangeRequest& request,
                                                 const AlgorithmChoice& choice);

/// The costs of make_reducer() to all by the algorithm of the options, with `auto` by rule.
AlgorithmCosts exchange_costs(const CostModelInput& question, Index rank);

/// The algorithms that give what the options ask for on these nodes, where the sum is exact.
std::vector<const AlgorithmEntry*> possible_algorithms(const DistOptions& options, const Nodes& nodes);

/// The algorithms among which `auto` takes the fastest for each bucket; without calibration the one of the
/// rule. Of those in node memory only that of the rule: the others would do the same there. None that suffers
/// from overlap, which calibration, with one bucket alone, would not see.
std::vector<const AlgorithmEntry*> automatic_algorithms(const DistOptions& options, const Plan& plan,
                                                        const Nodes& nodes);

/// A sentence on the algorithms that the reduction of the options rules out, and why; "" if there are none.
std::string note_on_order(const DistOptions& options);

}  // namespace lockstep
