#include "node_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

// Whether the ranks of this node, as numbered in the whole, follow each other.
bool follow_each_other(const std::vector<Index>& ranks) {
  return ranks.back() - ranks.front() + 1 == std::ssize(ranks);
}

}  // namespace

Nodes look_at_nodes(Communicator& comm, Index ranks_per_node) {
  const auto node = comm.split_by_node(ranks_per_node);
  const std::vector<Index> sizes = gather_numbers(comm, node->size());
  const std::vector<Index> first = gather_numbers(comm, node->rank() == 0 ? 1 : 0);
  return {.count = std::ranges::count(first, 1),
          .largest = *std::ranges::max_element(sizes),
          .neighbours = all_true(comm, follow_each_other(gather_numbers(*node, comm.rank())))};
}

std::vector<Index> node_sizes(Communicator& comm, Index ranks_per_node) {
  const auto node = comm.split_by_node(ranks_per_node);
  std::vector<Index> sizes = gather_numbers(comm, node->rank() == 0 ? node->size() : 0);
  std::erase(sizes, 0);
  return sizes;
}

std::vector<Index> full_nodes(Index world, Index ranks_per_node) {
  const Index full = ranks_per_node > 0 ? ranks_per_node : world;
  std::vector<Index> sizes;
  for (Index left = world; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, full));
  return sizes;
}

NodeLayout lay_out_node(Communicator& comm, Communicator& node, Communicator& across, const Plan& plan,
                        const NodeCut& cut, const std::string& user) {
  NodeLayout result;
  const std::vector<Index> ranks = gather_numbers(node, comm.rank());
  for (const Index rank : ranks) result.hosted.push_back(plan.hosted_by(rank));
  result.replicas = {result.hosted.front().begin, result.hosted.back().end};
  if (!all_true(comm, follow_each_other(ranks))) {
    throw AgreedError(
        fmt::format("{} needs neighbouring ranks on each node, but the launcher placed them in turn; "
                    "start them node by node (mpirun --map-by core, srun --distribution=block)",
                    user),
        kExitConfig);
  }

  // As many slices as the smallest node has ranks, so that each slice has an owner on every node.
  const std::vector<Index> sizes = gather_numbers(comm, node.size());
  const Index parts = *std::ranges::min_element(sizes);
  const std::vector<Index> begins = gather_numbers(across, result.replicas.begin);
  const std::vector<Index> ends = gather_numbers(across, result.replicas.end);
  Plan& between = result.across;
  between.world = across.size();
  between.replicas = plan.replicas;
  between.gradient_size = plan.gradient_size;
  between.loss_offset = plan.loss_offset;
  for (std::size_t i = 0; i < begins.size(); ++i) between.hosted.push_back({begins[i], ends[i]});
  for (const Bucket& bucket : cut.buckets) {
    Range slice{bucket.range.begin, bucket.range.begin};
    if (node.rank() < parts) slice = at(cut.cut(bucket.range, parts), node.rank());
    result.slices.push_back(slice);
    between.buckets.push_back({.range = slice});
    between.slices.push_back(cut.cut(slice, across.size()));
  }
  return result;
}

Plan plan_across(const Plan& plan, std::span<const Index> nodes) {
  Plan across;
  across.world = std::ssize(nodes);
  across.replicas = plan.replicas;
  across.gradient_size = plan.gradient_size / owners_on_node(nodes);
  across.loss_offset = across.gradient_size;
  const Range slice{0, across.gradient_size};
  across.buckets = {{.range = slice}};
  across.slices.emplace_back();
  Index first = 0;
  for (Index node = 0; node < across.world; ++node) {
    const Index last = first + at(nodes, node) - 1;
    across.hosted.push_back({plan.hosted_by(first).begin, plan.hosted_by(last).end});
    across.slices.front().push_back(split_evenly(slice.size(), across.world, node));
    first = last + 1;
  }
  return across;
}

RankOnNode find_on_node(std::span<const Index> nodes, Index rank) {
  RankOnNode found{.node = 0, .rank = rank};
  while (found.rank >= at(nodes, found.node)) found.rank -= at(nodes, found.node++);
  return found;
}

Index owners_on_node(std::span<const Index> nodes) {
  return std::ranges::min(nodes);
}

}  // namespace lockstep
