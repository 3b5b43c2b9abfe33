// The bytes that ranks send in a step, and the weights that they step on, by the costs of strategies.
#include "distributed/exchange/reducers.h"
#include "lockstep/base/catalog.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/calibration.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/common.h"

namespace lockstep::traffic_test {

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

std::vector<DistOptions> all_options() {
  std::vector<DistOptions> all;
  for (const StrategyEntry& strategy : strategy_catalog())
    for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered})
      all.push_back({.strategy = strategy.name, .reduction = reduction});
  return all;
}

TEST(Traffic, IsThatOfTheStages) {
  for (const std::string algorithm : {"ring", "rabenseifner", "mpi"}) {
    const Setting setting({.strategy = "allreduce", .algorithm = algorithm}, 2, 4);
    for (const RankCosts& rank : setting.ranks())
      EXPECT_NEAR(rank.sent / setting.gradient_bytes(), 2 * 7.0 / 8, 1e-3) << algorithm;
  }
}

TEST(Traffic, HierarchicalSendsEachByteOnceFromEachOfTwoNodes) {
  for (const Index on_node : {2, 8, 32}) {
    const Setting setting({.strategy = "allreduce", .algorithm = "hierarchical"}, 2, on_node);
    const std::vector<RankCosts> ranks = setting.ranks();
    double bytes = 0;
    for (Index rank = 0; rank < on_node; ++rank) bytes += at(ranks, rank).sent;
    EXPECT_NEAR(bytes, setting.gradient_bytes(), 2048) << "in whole slices";
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
    EXPECT_EQ(Setting(options, 1, 1).ranks().front().sent, 0) << options.strategy;
  }
}

TEST(Traffic, DoesNotDependOnTheBuckets) {
  for (const std::string algorithm : {"mpi", "ring", "hierarchical"}) {
    const DistOptions one{.strategy = "allreduce", .algorithm = algorithm};
    DistOptions four = one;
    four.bucket_kib = 256;
    const Setting setting(four, 4, 2);
    ASSERT_GE(setting.plan.buckets.size(), 4);
    const double whole = Setting(one, 4, 2).ranks()[1].sent;
    EXPECT_NEAR(setting.ranks()[1].sent, whole, 1e-3 * whole) << algorithm;
  }
}

TEST(Traffic, AnAverageIsSharedByTheStepsBetween) {
  const double whole = Setting({.strategy = "allreduce"}, 2, 2).ranks()[0].sent;
  const DistOptions options{.strategy = "local_sgd", .average_every = 8, .average_state = true};
  Setting setting(options, 2, 2);
  EXPECT_NEAR(setting.ranks()[0].sent, whole / 8, kNear) << "of an optimizer without state";
  EXPECT_EQ(setting.ranks()[0].stepped, 1);
  setting.costs.optimizer = 2;
  EXPECT_NEAR(setting.ranks()[0].sent, 3 * whole / 8, kNear);
  setting.options.average_state = false;
  EXPECT_NEAR(setting.ranks()[0].sent, whole / 8, kNear);
  setting.plan.hosted.front().end += 2;
  EXPECT_EQ(setting.ranks()[0].stepped, 3) << "each replica steps";
}

TEST(Traffic, CentralStorageSendsNothingOnANode) {
  const RankCosts central = Setting({.strategy = "central_storage"}, 1, 4).ranks()[0];
  EXPECT_EQ(central.sent, 0);
  EXPECT_EQ(central.stepped, 0.25);
}

// Each worker sends its gradients to the servers, and each server its part of the weights to all workers.
TEST(Traffic, ServersTalkToAllWorkers) {
  for (const Index servers : {1, 4}) {
    const Setting setting({.strategy = "parameter_server", .servers = servers}, 32, 1);
    const std::vector<RankCosts> ranks = setting.ranks();
    EXPECT_NEAR(ranks.front().sent, setting.gradient_bytes(), 1e4);
    EXPECT_EQ(ranks.front().stepped, 0);
    EXPECT_NEAR(ranks.back().sent, 31 * setting.gradient_bytes() / static_cast<double>(servers), 1e5);
    EXPECT_NEAR(ranks.back().stepped, 1 / static_cast<double>(servers), 1e-3);
  }
}

// Two servers, three workers, one left behind at most: a server keeps a gradient of each, answers at once.
TEST(Traffic, ServersOfWorkersThatGoOnByThemselvesAnswerOneAtATime) {
  for (const Index backup : {0, 1})
    for (const bool lossy : {false, true})
      for (const bool feedback : {false, true}) {
        DistOptions options{.strategy = "parameter_server"};
        options.servers = 2;
        options.compression = lossy ? "bf16" : "fp32";
        options.error_feedback = feedback;
        options.mode = backup > 0 ? ServerMode::kSync : ServerMode::kAsync;
        options.backup_workers = backup;
        Setting setting(options, 5, 1);
        SCOPED_TRACE(testing::Message() << backup << " " << lossy << " " << feedback);
        setting.costs.optimizer = 2;
        const double bytes = 4 << 18, message = lossy ? bytes / 2 : bytes;
        const RankCosts worker = setting.ranks().front();
        const auto exchanged = static_cast<double>(worker.gradients - setting.costs.gradient_bytes(0));
        EXPECT_NEAR(exchanged, lossy ? message + (feedback ? bytes : 0) : 0, 1e3);
        EXPECT_NEAR(worker.sent, message, 1e3);
        EXPECT_EQ(worker.optimizer, 0);
        const RankCosts server = setting.ranks().back();
        EXPECT_NEAR(static_cast<double>(server.gradients),
                    bytes + (backup > 0 ? 3 * bytes / 2 : 0) + (lossy ? message / 2 : 0), 1e3);
        EXPECT_NEAR(server.sent, bytes / 2 * (backup > 0 ? 3 : 1), 1e3);
        EXPECT_NEAR(static_cast<double>(server.optimizer), bytes, 1e3) << "two slots of a half";
        EXPECT_EQ(server.stepped, 0.5);
      }
}

// A message is never judged by a smaller one, but for those above the largest that is measured.
TEST(CalibratedSize, IsTheNextPowerOfTwoFromAFewPagesTo4MiB) {
  const Index smallest = calibrated_size(0);
  constexpr Index kLargest = 1 << 20;
  for (const Index count : {Index{1}, smallest - 1, smallest})
    EXPECT_EQ(calibrated_size(count), smallest) << count;
  for (Index size = 2 * smallest; size <= kLargest; size *= 2)
    for (const Index count : {size / 2 + 1, size - 1, size}) EXPECT_EQ(calibrated_size(count), size) << count;
  for (const Index count : {kLargest + 1, 100 * kLargest})
    EXPECT_EQ(calibrated_size(count), kLargest) << count;
}

}  // namespace lockstep::traffic_test
