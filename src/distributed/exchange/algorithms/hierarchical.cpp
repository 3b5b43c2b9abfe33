// The hierarchical algorithm sums in two levels. Inside a node, gradients lie in memory that its ranks share,
// and each rank adds one slice of them. Between nodes, ranks that own equal slices exchange them, so each
// number leaves a node once and not once for each rank. Both levels are in node_reducer.cpp; `shared` is its
// special case of a single node. This entry only refuses nodes on which no two ranks run.
#include "lockstep/distributed/exchange/algorithm.h"
#include "node_reducer.h"

namespace lockstep {

AlgorithmEntry hierarchical_entry() {
  return {.name = "hierarchical",
          .help =
              "as shared inside each node; between nodes each rank exchanges its slice with those who own it "
              "there, so a node sends no more than one rank would",
          .keeps_order = true,
          .in_node_memory = true,
          .refusal =
              [](const Nodes& nodes) {
                if (nodes.largest > 1) return std::string();
                return std::string("no two ranks share a node: use mpi, ring, rabenseifner or auto");
              },
          .make =
              [](const AlgorithmContext& context) {
                return make_node_reducer(context, "distribute.algorithm hierarchical");
              },
          .costs = node_reducer_costs};
}

}  // namespace lockstep
