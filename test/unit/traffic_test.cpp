// The messages of a step by the costs of strategies: closed forms, the stages that the trainer really goes
// through, and the bytes that it really sends.
#include <gtest/gtest.h>

#include <cmath>

#include "distributed/exchange/reducers.h"
#include "lockstep/base/catalog.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {
namespace {

constexpr double kBytes = 1 << 20;
constexpr double kNear = 1e-9;

Layout one_tensor(Index weights) {
  Layout layout;
  append(layout, {.name = "0.weight", .shape = {{weights}}, .range = {}});
  return layout;
}

// A plan with one replica a worker, and what is asked of it.
struct Setting {
  Setting(const DistOptions& distribute, Index nodes, Index on_node)
      : options(distribute),
        plan(make_plan(options, one_tensor(1 << 18),
                       {.world = nodes * on_node,
                        .servers = count_servers(options),
                        .replicas = nodes * on_node - count_servers(options)})),
        costs{.options = options,
              .plan = plan,
              .steps = options.average_every,
              .node_sizes = full_nodes(nodes * on_node, on_node)} {}

  std::vector<RankCosts> ranks() const { return strategy_entry(options.strategy).costs(costs); }
  double gradient_bytes() const { return static_cast<double>(plan.gradient_size * Index{sizeof(Scalar)}); }

  DistOptions options;
  Plan plan;
  CostModelInput costs;
};

Traffic all_of(const RankCosts& rank) {
  return rank.exchange + rank.after;
}

// Between nodes, of so many neighbouring ranks.
double far_bytes(const std::vector<RankCosts>& ranks, std::size_t begin, std::size_t count) {
  double bytes = 0;
  for (std::size_t rank = begin; rank < begin + count; ++rank) bytes += all_of(ranks[rank]).far.bytes;
  return bytes;
}

std::vector<DistOptions> all_options() {
  std::vector<DistOptions> all;
  for (const StrategyEntry& strategy : strategy_catalog()) {
    for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered}) {
      all.push_back({.strategy = strategy.name, .reduction = reduction});
    }
  }
  return all;
}

TEST(Traffic, HasItsClosedForms) {
  for (const Index ranks : {2, 4, 8, 64, 1024}) {
    const auto p = static_cast<double>(ranks);
    const Traffic sum = library_sum(ranks, 1, kBytes);
    EXPECT_NEAR(sum.far.count, 2 * std::log2(p), kNear);
    EXPECT_NEAR(sum.far.bytes, 2 * (p - 1) / p * kBytes, kNear);
    EXPECT_EQ(sum.near.count + sum.near.bytes, 0) << "each rank is a node";
    EXPECT_NEAR(library_sum(ranks, ranks, kBytes).near.bytes, sum.far.bytes, kNear) << "one node";
    EXPECT_NEAR(agreement(ranks, 1).far.count, std::log2(p), kNear);
    const Traffic each = to_each({.all = ranks - 1, .near = 1}, 2, kBytes);
    EXPECT_NEAR(each.far.count, 2 * (p - 2), kNear);
    EXPECT_NEAR(each.near.bytes, kBytes / (p - 1), kNear);
    EXPECT_NEAR(each.near.bytes + each.far.bytes, kBytes, kNear);
  }
  EXPECT_EQ(library_sum(1, 1, kBytes).near.count, 0);
  EXPECT_EQ(library_sum(6, 1, kBytes).far.count, 6) << "as many stages as eight ranks have";
}

TEST(Traffic, IsThatOfTheStages) {
  const auto rank_of = [](const std::string& algorithm, std::size_t rank) {
    const Setting setting({.strategy = "allreduce", .algorithm = algorithm}, 2, 4);
    const Traffic traffic = setting.ranks()[rank].exchange;
    const double bytes = setting.gradient_bytes();
    return std::vector{traffic.near.count, traffic.far.count, traffic.near.bytes / bytes,
                       traffic.far.bytes / bytes};
  };
  const auto expect = [](const std::vector<double>& found, const std::vector<double>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-3) << i;
  };
  const double around = 2 * 7.0 / 8;
  expect(rank_of("ring", 1), {14, 0, around, 0});
  expect(rank_of("ring", 3), {14 - 14, 14, 0, around});
  expect(rank_of("ring", 4), {0, 14, around, 0});  // receives from the other node in each stage
  for (const std::size_t rank : {0, 3, 6}) expect(rank_of("rabenseifner", rank), {4, 2, 0.75, 1});
  for (const std::size_t rank : {0, 3, 6}) expect(rank_of("mpi", rank), {4, 2, 0.75, 1});
}

TEST(Traffic, CarriesTheBytesThatAreSent) {
  for (DistOptions options : all_options()) {
    if (count_servers(options) > 0) continue;
    for (const Index on_node : {1, 4}) {
      for (const AlgorithmEntry& algorithm : algorithm_catalog()) {
        if (!algorithm.allows(options.reduction) || !algorithm.refusal({4, on_node}).empty()) continue;
        options.algorithm = algorithm.name;
        const Setting setting(options, 4, on_node);
        const Traffic agreed = agreement(4 * on_node, on_node);
        for (const RankCosts& rank : setting.ranks()) {
          const Traffic traffic = all_of(rank);
          const double extra = options.strategy == "zero1" || options.strategy == "central_storage"
                                   ? agreed.near.bytes + agreed.far.bytes
                                   : 0;
          EXPECT_NEAR(traffic.near.bytes + traffic.far.bytes - extra, rank.sent, 1e-3 * rank.sent + kNear)
              << options.strategy << " " << algorithm.name << ", " << on_node << " on a node";
        }
      }
    }
  }
}

TEST(Traffic, HierarchicalSendsEachByteOnceFromEachOfTwoNodes) {
  for (const Index on_node : {2, 8, 32}) {
    const Setting setting({.strategy = "allreduce", .algorithm = "hierarchical"}, 2, on_node);
    const std::vector<RankCosts> ranks = setting.ranks();
    EXPECT_NEAR(far_bytes(ranks, 0, static_cast<std::size_t>(on_node)), setting.gradient_bytes(), 2048)
        << "in whole slices";
    EXPECT_EQ(ranks[0].exchange.far.count, 2);
    EXPECT_EQ(ranks[0].exchange.near.count, 0);
    EXPECT_EQ(ranks[0].exchange.meetings, 1);
    EXPECT_EQ(ranks[0].exchange.added, setting.gradient_bytes());
  }
}

// Of three nodes two fold, and send different numbers; slices of one node go the same way.
TEST(Traffic, ARankSendsItsSliceBetweenNodesAsItsNodeIsNumbered) {
  for (const std::string name : {"allreduce", "local_sgd"}) {
    const DistOptions options{.strategy = name, .algorithm = "hierarchical"};
    const Setting setting(options, 3, 2);
    const Index slice = setting.plan.gradient_size / 2;
    for (Index rank = 0; rank < 6; ++rank) {
      const auto stages = rabenseifner_stages(static_cast<int>(rank / 2), 3, slice);
      EXPECT_EQ(exchange_costs(setting.costs, rank).sent, numbers_sent(stages) * Index{sizeof(Scalar)})
          << "rank " << rank;
    }
  }
}

TEST(Traffic, OneRankExchangesNothing) {
  for (const DistOptions& options : all_options()) {
    if (count_servers(options) > 0) continue;
    const Traffic traffic = all_of(Setting(options, 1, 1).ranks().front());
    EXPECT_EQ(traffic.near.count + traffic.far.count + traffic.meetings, 0) << options.strategy;
  }
}

TEST(Traffic, CountsEachBucket) {
  for (const std::string algorithm : {"mpi", "ring", "hierarchical"}) {
    const DistOptions one{.strategy = "allreduce", .algorithm = algorithm};
    DistOptions four = one;
    four.bucket_kib = 256;
    const Setting setting(four, 4, 2);
    const Traffic whole = Setting(one, 4, 2).ranks()[1].exchange;
    const Traffic divided = setting.ranks()[1].exchange;
    const auto buckets = static_cast<double>(setting.plan.buckets.size());
    ASSERT_GE(buckets, 4);
    EXPECT_EQ(divided.far.count, buckets * whole.far.count) << algorithm;
    EXPECT_EQ(divided.meetings, buckets * whole.meetings) << algorithm;
    EXPECT_NEAR(divided.far.bytes, whole.far.bytes, 1e-3 * whole.far.bytes) << algorithm;
  }
}

TEST(Traffic, AnswersForTheRanksThatAreAskedFor) {
  for (const DistOptions& options : all_options()) {
    Setting setting(options, 3, 2);
    const RankCosts last = setting.ranks()[5];
    setting.costs.ranks = {5, 6};
    ASSERT_EQ(setting.ranks().size(), 1) << options.strategy;
    EXPECT_EQ(setting.ranks().front().sent, last.sent) << options.strategy;
    EXPECT_EQ(all_of(setting.ranks().front()).far.bytes, all_of(last).far.bytes) << options.strategy;
  }
}

TEST(Traffic, AnAverageIsSharedByTheStepsBetween) {
  const double whole = Setting({.strategy = "allreduce"}, 2, 2).ranks()[0].exchange.far.bytes;
  const DistOptions options{.strategy = "local_sgd", .average_every = 8, .average_state = true};
  Setting setting(options, 2, 2);
  EXPECT_NEAR(setting.ranks()[0].after.far.bytes, whole / 8, kNear) << "of an optimizer without state";
  EXPECT_EQ(setting.ranks()[0].exchange.far.bytes, 0) << "nothing of it is hidden";
  EXPECT_EQ(setting.ranks()[0].stepped, 1);
  setting.costs.optimizer = 2;
  EXPECT_NEAR(setting.ranks()[0].after.far.bytes, 3 * whole / 8, kNear);
  setting.options.average_state = false;
  EXPECT_NEAR(setting.ranks()[0].after.far.bytes, whole / 8, kNear);
  setting.plan.hosted.front().end += 2;
  EXPECT_EQ(setting.ranks()[0].stepped, 3) << "each replica steps";
}

TEST(Traffic, CentralStorageHandsOutWeightsAsOthersHandOutSums) {
  const Traffic sums = Setting({.strategy = "allreduce", .algorithm = "shared"}, 1, 4).ranks()[0].exchange;
  const Setting setting({.strategy = "central_storage"}, 1, 4);
  const RankCosts central = setting.ranks()[0];
  EXPECT_EQ(central.after.added, sums.added);
  EXPECT_EQ(central.after.meetings, sums.meetings + 1);
  EXPECT_EQ(central.after.near.count, agreement(4, 4).near.count);
  EXPECT_EQ(central.exchange.meetings, 0) << "nothing of it is hidden";
  EXPECT_EQ(central.stepped, 0.25);
}

// Each server takes from and gives to all workers its part of the numbers.
TEST(Traffic, ServersTalkToAllWorkers) {
  const auto setting = [](Index servers, Index on_node) {
    return Setting({.strategy = "parameter_server", .servers = servers}, 32 / on_node, on_node);
  };
  for (const Index servers : {1, 4}) {
    const Setting flat = setting(servers, 1);
    const std::vector<RankCosts> ranks = flat.ranks();
    const Traffic server = ranks.back().exchange;
    const double workers = 32 - static_cast<double>(servers);
    EXPECT_EQ(server.far.count, workers);
    EXPECT_NEAR(server.far.bytes, workers / static_cast<double>(servers) * flat.gradient_bytes(), 1e4);
    EXPECT_NEAR(ranks.back().after.far.bytes, server.far.bytes, 1e5) << "as many weights";
    EXPECT_NEAR(ranks.back().stepped, 1 / static_cast<double>(servers), 1e-3);
    EXPECT_EQ(ranks.front().exchange.far.count, servers);
    EXPECT_EQ(ranks.front().stepped, 0);
  }
  const Setting two_nodes = setting(4, 16);
  const std::vector<RankCosts> ranks = two_nodes.ranks();
  EXPECT_EQ(ranks[0].exchange.near.count, 0);
  EXPECT_EQ(ranks[16].exchange.far.count, 0) << "beside all servers";
  EXPECT_EQ(ranks[31].exchange.far.count, 16);
  EXPECT_EQ(ranks[31].exchange.near.count, 12);
}

}  // namespace
}  // namespace lockstep
