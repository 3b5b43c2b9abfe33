#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "distributed/exchange/node/node_layout.h"
#include "lockstep/base/catalog.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/exchange/exchange.h"

#include "lockstep/distributed/exchange/algorithm.h"

namespace lockstep {

// One line for each file in algorithms/.
AlgorithmEntry mpi_entry();
AlgorithmEntry ring_entry();
AlgorithmEntry rabenseifner_entry();
AlgorithmEntry shared_entry();
AlgorithmEntry hierarchical_entry();

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

AlgorithmCosts exchange_costs(const CostModelInput& question, Index rank) {
  const Plan& plan = question.plan;
  const DistOptions& options = question.options;
  if (plan.world == 1 || is_lossy(options)) {
    const ExchangeCosts exchange(plan, options, Delivery::kAllReduce);
    return {.held = exchange.held(rank),
            .sent = exchange.sent(rank),
            .traffic = exchange.traffic(rank, question.on_node())};
  }
  const std::vector<Index> sizes = question.nodes();
  const Nodes nodes{.count = std::ssize(sizes), .largest = std::ranges::max(sizes)};
  const AlgorithmEntry& entry = options.algorithm == kAutoAlgorithm
                                    ? algorithm_by_rule(nodes)
                                    : find_entry(algorithm_catalog(), "algorithm", options.algorithm);
  return entry.costs(question, rank);
}

std::vector<const AlgorithmEntry*> possible_algorithms(const DistOptions& options, const Nodes& nodes) {
  std::vector<const AlgorithmEntry*> possible;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (options.algorithm != kAutoAlgorithm && options.algorithm != entry.name) continue;
    if (!entry.allows(options.reduction)) continue;
    if (entry.refusal(nodes).empty()) possible.push_back(&entry);
  }
  return possible;
}

std::vector<const AlgorithmEntry*> automatic_algorithms(const DistOptions& options, const Plan& plan,
                                                        const Nodes& nodes) {
  const AlgorithmEntry& by_rule = algorithm_by_rule(nodes);
  if (!options.calibrate) return {&by_rule};
  const bool native_overlap = options.reduction == Reduction::kNative && plan.several_buckets();
  std::vector<const AlgorithmEntry*> all;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (!entry.allows(options.reduction)) continue;
    if (native_overlap && entry.suffers_from_overlap) continue;
    if (entry.in_node_memory && &entry != &by_rule) continue;
    all.push_back(&entry);
  }
  return all;
}

std::string note_on_order(const DistOptions& options) {
  std::vector<std::string> names;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (!entry.allows(options.reduction)) names.push_back(entry.name);
  }
  if (names.empty()) return "";
  return fmt::format("with ordered reduction not: {}, which add in an order of their own",
                     fmt::join(names, ", "));
}

}  // namespace lockstep
