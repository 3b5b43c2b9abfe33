#include "lockstep/distributed/exchange/exchange_time.h"

#include <algorithm>
#include <bit>

#include "distributed/exchange/node/node_layout.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/exchange/make_reducer.h"
#include "lockstep/math/fixed_tree.h"

namespace lockstep {
namespace {

// A stage in which `leaving` ranks of a node, at most, send so many bytes over its link, and the others
// inside.
ExchangeSeconds stage_time(const Cluster& cluster, Index leaving, double bytes) {
  const bool all_leave = leaving == cluster.ranks_per_node;
  const double inside = all_leave ? 0 : cluster.oversubscription * cluster.message.seconds(bytes);
  if (leaving == 0) return {.ranks = inside};
  const double outside = cluster.link.seconds(static_cast<double>(leaving) * bytes);
  return {.ranks = inside, .link = std::max(0.0, outside - inside)};
}

// Ranks in pairs whose numbers differ in one bit, where the number is a power of two: the first 2 (p - P) of
// p ranks are one for two.
struct Doubling {
  explicit Doubling(const Cluster& cluster)
      : on_node(cluster.ranks_per_node),
        nodes(cluster.nodes),
        left(static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(cluster.ranks())))),
        pairs(cluster.ranks() - left) {}

  Index node_of(Index position) const {
    return (position < pairs ? 2 * position : position + pairs) / on_node;
  }
  // The most ranks of a node whose partners at this distance are on others.
  Index leaving(Index distance) const {
    std::vector<Index> count(static_cast<std::size_t>(nodes), 0);
    for (Index position = 0; position < left; ++position) {
      const Index node = node_of(position);
      if (node != node_of(position ^ distance)) ++at(count, node);
    }
    return *std::ranges::max_element(count);
  }
  // Pairs of neighbours of which the second rank is on the next node, for each node.
  Index leaving_pairs() const { return nodes > 1 && on_node % 2 == 1 ? 1 : 0; }

  Index on_node;
  Index nodes;
  Index left;
  Index pairs;
};

}  // namespace

ExchangeSeconds ring_time(const Cluster& cluster, double bytes) {
  const auto ranks = static_cast<double>(cluster.ranks());
  if (ranks == 1) return {};
  const ExchangeSeconds stage = stage_time(cluster, cluster.nodes > 1 ? 1 : 0, bytes / ranks);
  return stage * (2 * (ranks - 1)) + add_time(cluster, bytes / ranks) * (ranks - 1);
}

ExchangeSeconds rabenseifner_time(const Cluster& cluster, double bytes) {
  const Doubling doubling(cluster);
  ExchangeSeconds time;
  double part = bytes;
  for (Index distance = doubling.left / 2; distance > 0; distance /= 2) {
    part /= 2;
    const ExchangeSeconds stage = stage_time(cluster, doubling.leaving(distance), part);
    time = time + stage * 2 + add_time(cluster, part);
  }
  if (doubling.pairs == 0) return time;
  const ExchangeSeconds half = stage_time(cluster, doubling.leaving_pairs(), bytes / 2);
  const ExchangeSeconds whole = stage_time(cluster, doubling.leaving_pairs(), bytes);
  return time + half * 2 + whole + add_time(cluster, bytes / 2);
}

ExchangeSeconds recursive_doubling_time(const Cluster& cluster, double bytes) {
  const Doubling doubling(cluster);
  ExchangeSeconds time;
  for (Index distance = doubling.left / 2; distance > 0; distance /= 2) {
    time = time + stage_time(cluster, doubling.leaving(distance), bytes) + add_time(cluster, bytes);
  }
  if (doubling.pairs == 0) return time;
  return time + stage_time(cluster, doubling.leaving_pairs(), bytes) * 2 + add_time(cluster, bytes);
}

ExchangeSeconds library_time(const Cluster& cluster, double bytes) {
  return std::min(
      {recursive_doubling_time(cluster, bytes), rabenseifner_time(cluster, bytes), ring_time(cluster, bytes)},
      [](const ExchangeSeconds& a, const ExchangeSeconds& b) { return a.total() < b.total(); });
}

// Measured with one partial sum of each rank: a rank reads as many bytes as there are in all of them, and
// writes as many.
ExchangeSeconds shared_time(const Cluster& cluster, double bytes, double sums) {
  const double latency = cluster.shared.seconds(0);
  const double moving = cluster.shared.seconds(bytes) - latency;
  return {.ranks = cluster.oversubscription * (latency + moving * (sums + 1) / 2)};
}

ExchangeSeconds pairwise_time(const Cluster& cluster, double bytes, double messages) {
  const auto ranks = static_cast<double>(cluster.ranks());
  if (ranks == 1) return {};
  const auto on_node = static_cast<double>(cluster.ranks_per_node);
  const double message = bytes / (ranks - 1) / messages;
  ExchangeSeconds time = stage_time(cluster, 0, message) * (messages * (on_node - 1));
  if (cluster.nodes > 1) {
    time = time +
           ExchangeSeconds{.link = cluster.link.seconds(on_node * message)} * (messages * (ranks - on_node));
  }
  return time;
}

Index max_partial_sums(const Plan& plan, Reduction reduction) {
  if (reduction == Reduction::kNative) return 1;
  Index most = 1;
  for (const Range hosted : plan.hosted) {
    if (hosted.empty()) continue;
    most = std::max(most, static_cast<Index>(complete_subtrees(plan.replicas, hosted).size()));
  }
  return most;
}

ExchangeSeconds reducer_time(const TimeModelInput& question, Delivery delivery, double bytes) {
  const Plan& plan = question.costs.plan;
  const DistOptions& options = question.costs.options;
  const bool by_library = delivery == Delivery::kAllReduce && options.reduction == Reduction::kNative &&
                          make_codec(options) == nullptr;
  if (by_library) return library_time(question.cluster, bytes);
  const ExchangeCosts costs(plan, options, delivery);
  const double share = bytes / static_cast<double>(plan.gradient_size * Index{sizeof(Scalar)});
  const double sent = share * static_cast<double>(costs.sent(0));
  const auto sums = static_cast<double>(max_partial_sums(plan, options.reduction));
  const auto ranks = static_cast<double>(plan.world);
  const double added = bytes / ranks * (sums * ranks - 1);
  return pairwise_time(question.cluster, sent, sums + (delivery == Delivery::kAllReduce ? 1 : 0)) +
         add_time(question.cluster, added);
}

// The plan between nodes is of one rank's slice; the link carries those of all ranks of a node.
ExchangeSeconds time_between_nodes(const TimeModelInput& question, double bytes) {
  const Cluster across = between_nodes(question.cluster);
  const Plan& whole = question.costs.plan;
  const Plan plan = plan_across(whole, full_nodes(whole.world, question.cluster.ranks_per_node));
  const CostModelInput costs{.options = question.costs.options, .plan = plan};
  return reducer_time({.costs = costs, .cluster = across}, Delivery::kAllReduce, bytes);
}

ExchangeSeconds server_time(const TimeModelInput& question, double bytes, double messages) {
  const Cluster& cluster = question.cluster;
  const Plan& plan = question.costs.plan;
  const auto servers = static_cast<double>(plan.servers);
  const auto on_node = static_cast<double>(cluster.ranks_per_node);
  const double servers_on_node = std::min(servers, on_node);
  const double message = bytes / servers / messages;
  const double near = cluster.nodes == 1 ? static_cast<double>(plan.workers()) : on_node - servers_on_node;
  const double far = static_cast<double>(plan.workers()) - near;
  ExchangeSeconds time = stage_time(cluster, 0, message) * (messages * near);
  if (far == 0) return time;
  const double at_servers = messages * far * cluster.link.seconds(servers_on_node * message);
  const double at_workers = messages * servers * cluster.link.seconds(on_node * message);
  return time + ExchangeSeconds{.link = std::max(at_servers, at_workers)};
}

ExchangeSeconds add_time(const Cluster& cluster, double bytes) {
  if (cluster.add_bandwidth == 0) return {};
  return {.ranks = cluster.oversubscription * bytes / cluster.add_bandwidth};
}

ExchangeSeconds agreement_time(const Cluster& cluster) {
  return library_time(cluster, 2 * sizeof(double));
}

double bytes_of(const Bucket& bucket) {
  return static_cast<double>(bucket.range.size() * Index{sizeof(Scalar)});
}

}  // namespace lockstep
