// The time of an exchange: closed forms, the stages that the trainer really goes through, and the bytes that
// it really sends.
#include "lockstep/distributed/exchange/exchange_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "distributed/exchange/stages.h"
#include "lockstep/base/catalog.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/exchange.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {
namespace {

constexpr double kAlpha = 3e-6;
constexpr double kBandwidth = 2e9;
constexpr double kBytes = 1 << 20;
constexpr double kNear = 1e-12;

// Nodes of one rank each.
Cluster flat(Index ranks) {
  return {.nodes = ranks, .link = TimeCurve::line(kAlpha, kBandwidth)};
}

Cluster two_levels(Index nodes, Index ranks_per_node) {
  return {.nodes = nodes,
          .ranks_per_node = ranks_per_node,
          .message = TimeCurve::line(5e-7, 1e10),
          .shared = TimeCurve::line(1e-6, 2e10),
          .link = TimeCurve::line(kAlpha, kBandwidth)};
}

Layout one_tensor(Index weights) {
  Layout layout;
  append(layout, {.name = "0.weight", .shape = {{weights}}, .range = {}});
  return layout;
}

// A plan with one replica a worker, and what is asked of it.
struct Setting {
  Setting(const DistOptions& distribute, Index ranks, Index ranks_per_node)
      : options(distribute),
        plan(make_plan(
            options, one_tensor(1 << 18),
            {.world = ranks, .servers = count_servers(options), .replicas = ranks - count_servers(options)})),
        costs{.options = options, .plan = plan, .node_sizes = full_nodes(ranks, ranks_per_node)} {}

  DistOptions options;
  Plan plan;
  CostModelInput costs;
};

StepExchange time_of(const DistOptions& options, const Cluster& cluster) {
  const Setting setting(options, cluster.ranks(), cluster.ranks_per_node);
  const StrategyEntry& entry = strategy_entry(options.strategy);
  return entry.time({.costs = setting.costs, .cluster = cluster});
}

double total(const StepExchange& exchange) {
  double seconds = exchange.after.total();
  for (const ExchangeSeconds& bucket : exchange.buckets) seconds += bucket.total();
  return seconds;
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

TEST(TimeCurve, FollowsItsPoints) {
  const TimeCurve curve({{10, 1}, {20, 3}, {30, 2}, {40, 5}});
  EXPECT_DOUBLE_EQ(curve.seconds(0), 1);
  EXPECT_DOUBLE_EQ(curve.seconds(15), 2);
  EXPECT_DOUBLE_EQ(curve.seconds(25), 3) << "more bytes do not take less time";
  EXPECT_DOUBLE_EQ(curve.seconds(50), 7);
  EXPECT_DOUBLE_EQ(TimeCurve().seconds(50), 0);
  EXPECT_DOUBLE_EQ(TimeCurve::line(2, 4).seconds(8), 4);
}

TEST(ExchangeTime, HasItsClosedForms) {
  for (const Index ranks : {2, 4, 8, 64, 1024}) {
    const auto p = static_cast<double>(ranks);
    const double moved = 2 * (p - 1) / p * kBytes / kBandwidth;
    const Cluster cluster = flat(ranks);
    EXPECT_NEAR(ring_time(cluster, kBytes).total(), 2 * (p - 1) * kAlpha + moved, kNear * p);
    EXPECT_NEAR(rabenseifner_time(cluster, kBytes).total(), 2 * std::log2(p) * kAlpha + moved, kNear);
    EXPECT_NEAR(recursive_doubling_time(cluster, kBytes).total(),
                std::log2(p) * (kAlpha + kBytes / kBandwidth), kNear);
    EXPECT_NEAR(pairwise_time(cluster, kBytes, 1).total(), (p - 1) * kAlpha + kBytes / kBandwidth, kNear * p);
  }
  EXPECT_EQ(ring_time(flat(1), kBytes).total(), 0);
  EXPECT_EQ(library_time(flat(1), kBytes).total(), 0);
}

TEST(ExchangeTime, RanksOfANodeShareItsLink) {
  const Cluster cluster = two_levels(2, 4);
  const double leaving = 4 * kBytes * 4 / 7;  // of each rank's bytes four sevenths, to the other node
  EXPECT_NEAR(pairwise_time(cluster, kBytes, 1).link, 4 * kAlpha + leaving / kBandwidth, kNear);
  EXPECT_NEAR(ring_time(cluster, kBytes).total(), 14 * (kAlpha + kBytes / 8 / kBandwidth), kNear)
      << "one rank of a node at a time";
}

TEST(ExchangeTime, FoldsRanksThatAreNoPowerOfTwo) {
  const double eight = rabenseifner_time(flat(8), kBytes).total();
  EXPECT_NEAR(rabenseifner_time(flat(11), kBytes).total(), eight + 3 * kAlpha + 2 * kBytes / kBandwidth,
              kNear);
}

TEST(ExchangeTime, TheLibraryTakesFewStagesForLittle) {
  const Cluster cluster = flat(16);
  EXPECT_EQ(library_time(cluster, 8).total(), recursive_doubling_time(cluster, 8).total());
  EXPECT_EQ(library_time(cluster, kBytes).total(), rabenseifner_time(cluster, kBytes).total());
}

// The stages that the ranks go through, where each begins when all have ended the one before.
double time_of_stages(const MakeStages& make, const Cluster& cluster, Index count) {
  const auto ranks = static_cast<int>(cluster.ranks());
  const auto node_of = [&](int rank) { return rank / cluster.ranks_per_node; };
  std::vector<std::vector<Stage>> stages;
  for (int rank = 0; rank < ranks; ++rank) stages.push_back(make(rank, ranks, count));
  double seconds = 0;
  for (std::size_t stage = 0; stage < stages.front().size(); ++stage) {
    double slowest = 0;
    std::map<Index, double> leaving;
    for (int rank = 0; rank < ranks; ++rank) {
      const Transfer send = *at(stages, rank)[stage].send;
      const auto bytes = static_cast<double>(send.range.size() * Index{sizeof(Scalar)});
      if (node_of(rank) == node_of(send.peer))
        slowest = std::max(slowest, cluster.message.seconds(bytes));
      else
        leaving[node_of(rank)] += bytes;
    }
    for (const auto& [node, bytes] : leaving) slowest = std::max(slowest, cluster.link.seconds(bytes));
    seconds += slowest;
  }
  return seconds;
}

TEST(ExchangeTime, IsThatOfTheStages) {
  constexpr Index kCount = 1 << 16;
  const double bytes = kCount * sizeof(Scalar);
  for (const Index nodes : {1, 2, 4, 8}) {
    for (const Index on_node : {1, 2, 4, 8}) {
      if (nodes * on_node == 1) continue;
      const Cluster cluster = two_levels(nodes, on_node);
      SCOPED_TRACE(testing::Message() << nodes << " nodes of " << on_node);
      EXPECT_NEAR(ring_time(cluster, bytes).total(), time_of_stages(ring_stages, cluster, kCount), 1e-9);
      EXPECT_NEAR(rabenseifner_time(cluster, bytes).total(),
                  time_of_stages(rabenseifner_stages, cluster, kCount), 1e-9);
    }
  }
}

TEST(ExchangeTime, HierarchicalSendsEachByteOnceFromEachOfTwoNodes) {
  for (const Index on_node : {2, 8, 32}) {
    const Cluster cluster = two_levels(2, on_node);
    const StepExchange exchange = time_of({.strategy = "allreduce", .algorithm = "hierarchical"}, cluster);
    const Setting setting({}, cluster.ranks(), on_node);
    const double bytes = bytes_of(setting.plan.buckets.front());
    ASSERT_EQ(exchange.buckets.size(), 1);
    EXPECT_NEAR(exchange.buckets.front().link, 2 * kAlpha + bytes / kBandwidth, kNear);
    EXPECT_NEAR(exchange.buckets.front().ranks, 1e-6 + bytes / 2e10, kNear);
  }
}

// Of three nodes two fold, and send different numbers; slices of one node go the same way.
TEST(ExchangeTime, ARankSendsItsSliceBetweenNodesAsItsNodeIsNumbered) {
  for (const std::string name : {"allreduce", "local_sgd"}) {
    const DistOptions options{.strategy = name, .algorithm = "hierarchical"};
    const Setting setting(options, 6, 2);
    const Index slice = setting.plan.gradient_size / 2;
    for (Index rank = 0; rank < 6; ++rank) {
      const auto stages = rabenseifner_stages(static_cast<int>(rank / 2), 3, slice);
      EXPECT_EQ(exchange_costs(setting.costs, rank).sent, numbers_sent(stages) * Index{sizeof(Scalar)})
          << "rank " << rank;
    }
  }
}

// With a link as the only cost, its seconds are the bytes that the strategy says it sends.
TEST(ExchangeTime, CarriesTheBytesThatAreSent) {
  for (const Index on_node : {1, 4}) {
    for (const std::string name : {"mpi", "rabenseifner", "ring", "hierarchical"}) {
      if (name == "hierarchical" && on_node == 1) continue;
      const DistOptions options{.strategy = "allreduce", .algorithm = name};
      const Cluster cluster{.nodes = 4, .ranks_per_node = on_node, .link = TimeCurve::line(0, 1)};
      const Setting setting(options, cluster.ranks(), on_node);
      const AlgorithmEntry& entry = find_entry(algorithm_catalog(), "algorithm", name);
      const double sent = static_cast<double>(entry.costs(setting.costs, 0).sent);
      const double seconds = total(time_of(options, cluster));
      if (on_node == 1 || name == "ring") {
        EXPECT_NEAR(seconds, sent, 0.01 * sent) << name;
      } else if (name == "hierarchical") {
        EXPECT_NEAR(seconds, 4 * sent, 0.01 * sent) << "the slices of four ranks on one link";
      } else {
        EXPECT_LE(seconds, 4 * sent) << name;
      }
    }
  }
}

TEST(ExchangeTime, MoreBandwidthIsNeverSlowerAndMoreLatencyNeverFaster) {
  for (const DistOptions& options : all_options()) {
    for (const Index nodes : {2, 3, 16}) {
      for (const Index on_node : {1, 3, 4}) {
        SCOPED_TRACE(testing::Message() << options.strategy << " on " << nodes << " nodes of " << on_node);
        double before = 0;
        for (const double gbit : {100, 25, 10, 1}) {
          Cluster cluster = two_levels(nodes, on_node);
          cluster.link = TimeCurve::line(kAlpha, gbit * 1e9 / 8);
          const double seconds = total(time_of(options, cluster));
          EXPECT_GT(seconds, before);
          cluster.link = TimeCurve::line(2 * kAlpha, gbit * 1e9 / 8);
          EXPECT_GE(total(time_of(options, cluster)), seconds);
          before = seconds;
        }
      }
    }
  }
}

TEST(ExchangeTime, OneRankExchangesNothing) {
  for (const DistOptions& options : all_options()) {
    if (count_servers(options) > 0) continue;
    EXPECT_EQ(total(time_of(options, two_levels(1, 1))), 0) << options.strategy;
  }
}

TEST(ExchangeTime, CrowdedRanksTakeLongerInsideANode) {
  for (const DistOptions& options : all_options()) {
    Cluster cluster = two_levels(1, 4);
    const double alone = total(time_of(options, cluster));
    cluster.oversubscription = 2;
    EXPECT_NEAR(total(time_of(options, cluster)), 2 * alone, kNear) << options.strategy;
  }
}

TEST(ExchangeTime, AnAverageIsSharedByTheStepsBetween) {
  const Cluster cluster = two_levels(2, 2);
  const double whole = total(time_of({.strategy = "allreduce"}, cluster));
  DistOptions options{.strategy = "local_sgd", .average_every = 8, .average_state = true};
  EXPECT_NEAR(total(time_of(options, cluster)), whole / 8, kNear) << "of an optimizer without state";
  EXPECT_EQ(time_of(options, cluster).stepped, 1);
  Setting setting(options, cluster.ranks(), cluster.ranks_per_node);
  setting.costs.optimizer = 2;
  const auto& time = strategy_entry("local_sgd").time;
  EXPECT_NEAR(total(time({.costs = setting.costs, .cluster = cluster})), 3 * whole / 8, kNear);
  setting.options.average_state = false;
  EXPECT_NEAR(total(time({.costs = setting.costs, .cluster = cluster})), whole / 8, kNear);
  setting.plan.hosted.front().end += 2;
  EXPECT_EQ(time({.costs = setting.costs, .cluster = cluster}).stepped, 3) << "each replica steps";
}

// As in a run: see make_exchange().
TEST(ExchangeTime, AutoTakesTheFastestThatItWouldTry) {
  const Cluster far{.nodes = 8, .link = TimeCurve::line(0.1, kBandwidth)};
  const auto seconds = [&](const std::string& algorithm, Index bucket_kib, bool calibrate) {
    return total(time_of(
        {.strategy = "allreduce", .algorithm = algorithm, .calibrate = calibrate, .bucket_kib = bucket_kib},
        far));
  };
  ASSERT_LT(seconds("mpi", 65536, true), seconds("rabenseifner", 65536, true)) << "few stages are best here";
  EXPECT_EQ(seconds("auto", 65536, true), seconds("mpi", 65536, true));
  ASSERT_LT(seconds("rabenseifner", 256, true), seconds("ring", 256, true));
  EXPECT_EQ(seconds("auto", 256, true), seconds("rabenseifner", 256, true)) << "MPI's suffers from overlap";
  EXPECT_EQ(seconds("auto", 256, false), seconds("mpi", 256, false)) << "by rule";
}

TEST(ExchangeTime, CentralStorageHandsOutWeightsAsOthersHandOutSums) {
  const Cluster node = two_levels(1, 4);
  const double sums = total(time_of({.strategy = "allreduce", .algorithm = "shared"}, node));
  const double meeting = shared_time(node, 0, 1).total();
  EXPECT_NEAR(total(time_of({.strategy = "central_storage"}, node)),
              sums + meeting + agreement_time(node).total(), kNear);
}

TEST(ExchangeTime, TheServersLinkIsShared) {
  const auto seconds = [](Index servers, Index on_node) {
    return total(
        time_of({.strategy = "parameter_server", .servers = servers}, two_levels(32 / on_node, on_node)));
  };
  EXPECT_LT(seconds(4, 1), 0.4 * seconds(1, 1)) << "four links instead of one";
  EXPECT_GT(seconds(4, 16), 0.8 * seconds(1, 16)) << "all on the last node";
}

}  // namespace
}  // namespace lockstep
