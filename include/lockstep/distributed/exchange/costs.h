// Memory and messages of a strategy, known before the run: from the same plan that the run follows.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/distributed/exchange/reducer.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"

namespace lockstep {

/// Costs of one rank, in bytes, and its part in a step.
struct RankCosts {
  Index weights = 0;    ///< copies of the weights, and what is kept to average them
  Index optimizer = 0;  ///< state
  Index gradients = 0;  ///< local sums and exchange
  double sent = 0;      ///< per step that the rank takes part in, on average over the run
  double stepped = 1;   ///< times all weights that its optimizer steps on
};

struct CostModelInput {
  const DistOptions& options;
  const Plan& plan;
  LocalSums sums = LocalSums::kOneSum;  ///< how ranks add the gradients of their replicas
  bool interleaved = false;             ///< see arenas_needed()
  OptimizerMemory optimizer = {};
  Index steps = 1;                     ///< steps of the run
  std::vector<Index> node_sizes = {};  ///< ranks of each node, in order; empty: all are on one

  /// node_sizes, also where all are on one.
  std::vector<Index> nodes() const { return node_sizes.empty() ? std::vector{plan.world} : node_sizes; }
  /// Bytes of one copy of all weights.
  Index weights_bytes() const { return plan.loss_offset * Index{sizeof(Scalar)}; }
  /// Bytes of the optimizer's state for all weights, and of its scratch memory.
  Index optimizer_bytes() const;
  /// Bytes of the arenas for the gradients of a rank's replicas.
  Index gradient_bytes(Index rank) const;
};

/// The answer for each rank.
std::vector<RankCosts> each_rank(const CostModelInput& question,
                                 const std::function<RankCosts(Index rank)>& costs);

/// The costs of one rank, in bytes.
struct AlgorithmCosts {
  Index held = 0;  ///< beside the gradients themselves
  Index sent = 0;  ///< per exchange
};

/// Costs of the exchange by messages, through the codec of the options and, to all, by plain MPI: as much as
/// an algorithm that is optimal in bandwidth sends.
class ExchangeCosts {
 public:
  ExchangeCosts(const Plan& plan, const DistOptions& options, Delivery delivery);

  AlgorithmCosts of(Index rank) const { return {.held = held(rank), .sent = sent(rank)}; }

 private:
  Index held(Index rank) const;
  Index sent(Index rank) const;
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
