#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "algorithms/calibration.h"
#include "lockstep/base/catalog.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

AlgorithmChoice all_buckets(const Plan& plan, const AlgorithmEntry& entry) {
  return AlgorithmChoice(plan.buckets.size(), &entry);
}

const AlgorithmEntry& find_algorithm(const std::string& name) {
  return find_entry(algorithm_catalog(), "algorithm", name);
}

// Those that give what is asked on these nodes. Of those in node memory only the one of the rule: others
// would do the same. Calibration times one bucket alone, and would not see what suffers from overlap.
std::vector<const AlgorithmEntry*> candidates(const AlgorithmContext& context, const Nodes& nodes) {
  const bool native = context.reduction == Reduction::kNative;
  const AlgorithmEntry& by_rule = algorithm_by_rule(nodes);
  std::vector<const AlgorithmEntry*> all;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (!entry.allows(context.reduction)) continue;
    if (native && context.overlaps && entry.suffers_from_overlap) continue;
    if (entry.in_node_memory && &entry != &by_rule) continue;
    all.push_back(&entry);
  }
  return all;
}

// For each bucket what is fastest for its size.
AlgorithmChoice calibrate(const AlgorithmContext& context,
                          std::span<const AlgorithmEntry* const> candidates) {
  std::map<Index, const AlgorithmEntry*> by_size;
  for (const Bucket& bucket : context.plan.buckets) by_size[calibrated_size(bucket.range.size())] = nullptr;
  std::vector<Index> sizes;
  for (const auto& [size, entry] : by_size) sizes.push_back(size);
  const std::vector<const AlgorithmEntry*> fastest = find_fastest(context, candidates, sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) by_size[sizes[i]] = fastest[i];
  AlgorithmChoice choice;
  for (const Bucket& bucket : context.plan.buckets) {
    choice.push_back(by_size[calibrated_size(bucket.range.size())]);
  }
  return choice;
}

// Shared memory may not be to be had on some node: then all do without it.
std::unique_ptr<Reducer> make_automatic(const AlgorithmContext& context, bool calibrates,
                                        const Nodes& nodes) {
  std::string problem;
  try {
    return make_bucketwise_reducer(context, calibrates ? calibrate(context, candidates(context, nodes))
                                                       : all_buckets(context.plan, algorithm_by_rule(nodes)));
  } catch (const AgreedError& error) {
    problem = error.what();
  }
  return make_bucketwise_reducer(context, all_buckets(context.plan, find_algorithm("mpi")),
                                 fmt::format(" (not through shared memory: {})", problem));
}

}  // namespace

std::unique_ptr<Reducer> make_exchange(AlgorithmContext context, const DistOptions& options) {
  context.reduction = options.reduction;
  context.overlaps = context.plan.buckets.size() > 1;
  if (context.comm.size() == 1 || !uses_algorithm(options)) {
    return make_reducer(context.comm, context.plan, options, Delivery::kToAll);
  }
  const Nodes nodes = look_at_nodes(context.comm, context.ranks_per_node);
  if (options.algorithm == kAutoAlgorithm) return make_automatic(context, options.calibrate, nodes);
  const AlgorithmEntry& entry = find_algorithm(options.algorithm);
  const std::string refusal = entry.refusal(nodes);
  if (!refusal.empty()) {
    throw AgreedError(fmt::format("refused: distribute.algorithm {}: {}", entry.name, refusal), kExitConfig);
  }
  return make_bucketwise_reducer(context, all_buckets(context.plan, entry));
}

}  // namespace lockstep
