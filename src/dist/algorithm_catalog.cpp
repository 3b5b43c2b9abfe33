#include <array>

#include "algorithms/entries.h"
#include "lockstep/base/catalog.h"
#include "lockstep/dist/strategy.h"
#include "lockstep/dist/wire.h"
#include "node/node_layout.h"

namespace lockstep {

std::span<const AlgorithmEntry> algorithm_catalog() {
  static const std::array kEntries{mpi_entry(), ring_entry(), rabenseifner_entry(), shared_entry(),
                                   hierarchical_entry()};
  return kEntries;
}

const AlgorithmEntry& algorithm_by_rule(const Nodes& nodes) {
  const bool shares_memory = nodes.largest > 1 && nodes.neighbours;
  const char* name = nodes.count == 1 ? "shared" : "hierarchical";
  return find_entry(algorithm_catalog(), "algorithm", shares_memory ? name : "mpi");
}

bool uses_algorithm(const DistOptions& options) {
  return find_entry(strategy_catalog(), "strategy", options.strategy).sums_to_all &&
         make_wire(options) == nullptr;
}

AlgorithmCosts exchange_costs(const CostQuestion& question, Index rank) {
  const Plan& plan = question.plan;
  const DistOptions& options = question.options;
  if (plan.world == 1 || !uses_algorithm(options)) {
    const ExchangeCosts exchange(plan, options, Delivery::kToAll);
    return {.held = exchange.held(rank), .sent = exchange.sent(rank)};
  }
  const Index on_node = ranks_on_node(question.ranks_per_node, plan.world);
  const Nodes nodes{.count = (plan.world + on_node - 1) / on_node, .largest = on_node};
  const AlgorithmEntry& entry = options.algorithm == kAutoAlgorithm
                                    ? algorithm_by_rule(nodes)
                                    : find_entry(algorithm_catalog(), "algorithm", options.algorithm);
  return entry.costs(question, rank);
}

}  // namespace lockstep
