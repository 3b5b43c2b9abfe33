#include "node_layout.h"

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/dist/blocks.h"

namespace lockstep {
namespace {

std::vector<Index> gather(Communicator& comm, Index mine) {
  std::vector<Index> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(as_buffer(std::span<const Index>(&mine, 1)), as_buffer(std::span(all)));
  return all;
}

}  // namespace

NodeLayout lay_out_node(Communicator& comm, Communicator& node, Communicator& across, const Plan& plan,
                        const Layout& layout) {
  NodeLayout result;
  const std::vector<Index> ranks = gather(node, comm.rank());
  for (const Index rank : ranks) result.hosted.push_back(plan.hosted[static_cast<std::size_t>(rank)]);
  result.replicas = {result.hosted.front().begin, result.hosted.back().end};

  const bool neighbours = ranks.back() - ranks.front() + 1 == node.size();
  const std::vector<Index> scattered = gather(comm, neighbours ? 0 : 1);
  if (std::ranges::find(scattered, 1) != scattered.end()) {
    throw ConfigError(
        "strategy central_storage needs neighbouring ranks on each node, but the launcher dealt them out in "
        "turn; start them node by node (mpirun --map-by core, srun --distribution=block)");
  }

  // As many slices as the smallest node has ranks, so that each slice has an owner on every node.
  const std::vector<Index> sizes = gather(comm, node.size());
  const Index slices = *std::ranges::min_element(sizes);
  const BlockGrid grid(layout);
  if (node.rank() < slices) {
    result.slice = owner_slices(grid, {0, plan.gradient_size}, slices)[static_cast<std::size_t>(node.rank())];
  }
  const std::vector<Index> begins = gather(across, result.replicas.begin);
  const std::vector<Index> ends = gather(across, result.replicas.end);
  Plan& between = result.across;
  between.world = across.size();
  between.replicas = plan.replicas;
  between.gradient_size = plan.gradient_size;
  between.loss_place = plan.loss_place;
  for (std::size_t i = 0; i < begins.size(); ++i) between.hosted.push_back({begins[i], ends[i]});
  between.buckets = {{.range = result.slice, .layer = 0}};
  between.slices = {owner_slices(grid, result.slice, across.size())};
  return result;
}

}  // namespace lockstep
