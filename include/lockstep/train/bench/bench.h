// How fast this machine is, and how near training comes to it: the limits of its cores and memory, the nodes
// of a model, and the exchange. Every figure is a median of several runs, on all ranks at once.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/nn/model.h"

namespace lockstep {

/// Limits of one thread of each rank while all ranks are busy; those of the slowest rank.
struct MachineLimits {
  double flops = 0;  ///< fp32 multiply-adds that the core can start, counted as two each, per second
  double cache_bandwidth = 0;   ///< bytes per second read and written by a copy within the second-level cache
  double memory_bandwidth = 0;  ///< bytes per second of a copy that is much larger
};
/// *Collective.* Takes about half a second.
MachineLimits measure_machine(Communicator& comm);

/// An op of the model on one batch.
struct OpRate {
  std::string title;
  Index forward_flops = 0;   ///< operations for the batch
  Index backward_flops = 0;  ///< operations for the batch; without the input gradient of the first op
  double forward_seconds = 0;
  double backward_seconds = 0;
};
/// *Collective.* Batches of `rows` random samples.
std::vector<OpRate> measure_ops(Communicator& comm, const Model& model, Index rows);

/// *Local.* Seconds of one thread for so many random samples through the model and back, at best.
double measure_pass(const Model& model, Index rows);

/// The sum of a gradient over all ranks, and the optimizer's step with it.
struct UpdateRate {
  std::string name;
  Index weights = 0;
  double seconds = 0;
  /// Bytes of memory that each of so many ranks reads and writes at least: its share of all gradients, of the
  /// weights and of their velocity, these two there and back.
  double least_bytes(Index ranks) const;
};
/// *Collective.* The exchange and the step of SGD with momentum on one tensor of so many weights, as the
/// strategy of the options does it with nothing to hide behind. With `ranks_per_node` > 0 nodes are taken for
/// so small.
UpdateRate measure_update(Communicator& comm, const DistOptions& options, Index ranks_per_node,
                          Index weights);
/// *Collective.* The yardstick: a blocking all-reduce of MPI, then each rank steps on all weights.
UpdateRate measure_plain_update(Communicator& comm, Index weights);

/// *Collective.* Seconds of a blocking all-reduce of so many bytes of floats.
double measure_all_reduce(Communicator& comm, Index bytes);

/// *Collective* over ranks that share memory, at least two: seconds in which a cache line goes from a rank to
/// its neighbour and back. Cores with a cache in common are quicker at it; ranks that share a core have to
/// take turns for it.
double measure_cache_line(Communicator& node);

/// One way to bring the sum of the gradients to every rank.
struct AlgorithmRate {
  std::string name = {};
  Index bytes = 0;
  double seconds = 0;
};
/// *Collective.* So many bytes of gradients by each algorithm that these nodes and the reduction of the
/// options allow.
std::vector<AlgorithmRate> measure_algorithms(Communicator& comm, const DistOptions& options,
                                              const Plan& plan, Index ranks_per_node, Index bytes);

/// Cores of this machine, whatever the rank is bound to.
Index count_cores();

}  // namespace lockstep
