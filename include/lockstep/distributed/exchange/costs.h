// Memory and messages of a strategy, known before the run: from the same plan that the run follows.
//
// Messages are counted as the alpha-beta model wants them (Hockney 1994, "The communication challenge for
// MPP"): each takes a latency, and a time for each byte.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/distributed/exchange/reducer.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"

namespace lockstep {

/// Messages of a rank, one after the other: their number, and the bytes of all.
struct Messages {
  double count = 0;
  double bytes = 0;
};

/// The part that a rank takes in an exchange.
struct Traffic {
  Messages near = {};   ///< with ranks of its node
  Messages far = {};    ///< with those of other nodes
  double meetings = 0;  ///< times that the ranks of a node wait for each other in memory they share
  double added = 0;     ///< bytes that they add up there, each a slice of them

  Traffic operator+(const Traffic& other) const;
  Traffic operator*(double factor) const;
};

/// An exchange in so many equal parts, one after the other.
Traffic in_parts(Traffic traffic, Index parts);

/// The ranks that a rank exchanges with, and those of them on its node.
struct Peers {
  Index all = 0;
  Index near = 0;
};
/// A server has the workers as peers, and a worker the servers; without servers these are all other ranks.
Peers peers_of(const Plan& plan, Index rank, Index on_node);

/// So many bytes in all, in `messages` equal ones to each of the peers.
Traffic to_each(const Peers& peers, double messages, double bytes);
/// The sum of so many bytes on all ranks, as a library that is well tuned takes it: by halving and doubling,
/// first between nodes.
Traffic library_sum(Index ranks, Index on_node, double bytes);
/// The sum in memory that the ranks of a node share, of so many bytes and partial sums of each rank.
Traffic shared_sum(double bytes, Index sums);
/// The two numbers by which all ranks agree on a step.
Traffic agreement(Index ranks, Index on_node);

/// The partial sums that a rank brings to the exchange.
Index partial_sums(const Plan& plan, Reduction reduction, Index rank);

/// Costs of one rank, in bytes, and its part in a step.
struct RankCosts {
  Index weights = 0;      ///< copies of the weights, and what is kept to average them
  Index optimizer = 0;    ///< state
  Index gradients = 0;    ///< local sums and exchange
  double sent = 0;        ///< per step that the rank takes part in, on average over the run
  Traffic exchange = {};  ///< of the plan's buckets, each of which may leave while backward goes on
  Traffic after = {};     ///< begins when backward is over
  double stepped = 1;     ///< times all weights that its optimizer steps on
};

struct CostModelInput {
  const DistOptions& options;
  const Plan& plan;
  LocalSums sums = LocalSums::kOneSum;  ///< how ranks add the gradients of their replicas
  bool interleaved = false;             ///< see arenas_needed()
  OptimizerMemory optimizer = {};
  Index steps = 1;                     ///< steps of the run
  std::vector<Index> node_sizes = {};  ///< ranks of each node, in order; empty: all are on one
  Range ranks = {};                    ///< those asked for; empty: all

  /// node_sizes, also where all are on one.
  std::vector<Index> nodes() const;
  /// Ranks of the largest node.
  Index on_node() const;
  /// Bytes of one copy of all weights.
  Index weights_bytes() const;
  /// Bytes of the optimizer's state for all weights, and of its scratch memory.
  Index optimizer_bytes() const;
  /// Bytes of the arenas for the gradients of a rank's replicas.
  Index gradient_bytes(Index rank) const;
};

/// The answer for each rank that is asked for.
std::vector<RankCosts> each_rank(const CostModelInput& question,
                                 const std::function<RankCosts(Index rank)>& costs);

/// The costs of one rank, in bytes.
struct AlgorithmCosts {
  Index held = 0;        ///< beside the gradients themselves
  Index sent = 0;        ///< per exchange
  Traffic traffic = {};  ///< of an exchange of all buckets
};

/// Costs of the exchange by messages, through the codec of the options and, to all, by plain MPI: as much as
/// an algorithm that is optimal in bandwidth sends.
class ExchangeCosts {
 public:
  ExchangeCosts(const Plan& plan, const DistOptions& options, Delivery delivery);

  AlgorithmCosts of(Index rank, Index on_node) const {
    return {.held = held(rank), .sent = sent(rank), .traffic = traffic(rank, on_node)};
  }

 private:
  Index held(Index rank) const;
  Index sent(Index rank) const;
  Traffic traffic(Index rank, Index on_node) const;
  Index owned(Index rank) const;
  Index own_message(Index rank) const;

  const Plan& plan_;
  Reduction reduction_;
  bool to_all_;
  bool error_feedback_;
  bool lossy_;
  bool by_mpi_;             // a collective, which holds nothing and has no owners
  Index message_;           // bytes of all gradients in one
  Index all_partial_sums_;  // partial sums that all ranks bring together
};

}  // namespace lockstep
