// The algorithm `shared` sends no message: all ranks of the job are on one node and keep their gradients in
// memory that they share. A bucket is cut into a slice for each rank. A rank adds its slice over the
// gradients of all ranks and writes the sum where the others read it. node_reducer.cpp does that, with
// counters in shared memory for synchronisation. This entry refuses jobs on several nodes, for which
// `hierarchical` exists.
#include <fmt/format.h>

#include "lockstep/distributed/exchange/algorithm.h"
#include "node_reducer.h"

namespace lockstep {

AlgorithmEntry shared_entry() {
  return {.name = "shared",
          .help =
              "the gradients lie in memory that all ranks share; each rank adds a slice of them and puts the "
              "sums where the others look for them: no message at all, one node only",
          .keeps_order = true,
          .in_node_memory = true,
          .refusal =
              [](const Nodes& nodes) {
                if (nodes.count == 1) return std::string();
                return fmt::format(
                    "the ranks are on {} nodes, which share no memory: use hierarchical, or auto",
                    nodes.count);
              },
          .make =
              [](const AlgorithmContext& context) {
                return make_node_reducer(context, "distribute.algorithm shared");
              },
          .costs = node_reducer_costs};
}

}  // namespace lockstep
