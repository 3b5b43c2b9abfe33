#include <fmt/format.h>

#include <map>

#include "distributed/exchange/algorithms/calibration.h"
#include "lockstep/base/catalog.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/exchange/exchange.h"
#include "lockstep/distributed/exchange/reducer.h"

namespace lockstep {
namespace {

AlgorithmChoice all_buckets(const Plan& plan, const AlgorithmEntry& entry) {
  return AlgorithmChoice(plan.buckets.size(), &entry);
}

const AlgorithmEntry& find_algorithm(const std::string& name) {
  return find_entry(algorithm_catalog(), "algorithm", name);
}

// Chooses for each bucket the algorithm that is fastest for its size.
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
std::unique_ptr<Reducer> make_automatic(const AlgorithmContext& context, const DistOptions& options,
                                        const Nodes& nodes) {
  const std::vector<const AlgorithmEntry*> candidates = automatic_algorithms(options, context.plan, nodes);
  std::string problem;
  try {
    return make_bucketwise_reducer(context, options.calibrate
                                                ? calibrate(context, candidates)
                                                : all_buckets(context.plan, *candidates.front()));
  } catch (const AgreedError& error) {
    problem = error.what();
  }
  return make_bucketwise_reducer(context, all_buckets(context.plan, find_algorithm("mpi")),
                                 fmt::format(" (not through shared memory: {})", problem));
}

}  // namespace

std::unique_ptr<Reducer> make_exchange(AlgorithmContext context, const DistOptions& options) {
  context.reduction = options.reduction;
  context.overlaps = context.plan.several_buckets();
  if (context.comm.size() == 1 || is_lossy(options)) {
    return make_reducer(context.comm, context.plan, options, Delivery::kAllReduce);
  }
  const Nodes nodes = look_at_nodes(context.comm, context.ranks_per_node);
  if (options.algorithm == kAutoAlgorithm) return make_automatic(context, options, nodes);
  const AlgorithmEntry& entry = find_algorithm(options.algorithm);
  const std::string refusal = entry.refusal(nodes);
  if (!refusal.empty()) {
    throw AgreedError(fmt::format("refused: distribute.algorithm {}: {}", entry.name, refusal), kExitConfig);
  }
  return make_bucketwise_reducer(context, all_buckets(context.plan, entry));
}

}  // namespace lockstep
