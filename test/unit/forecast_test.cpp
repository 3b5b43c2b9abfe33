// What a step takes elsewhere: what scales with what, what is hidden, and what is refused.
#include "lockstep/train/plan/forecast.h"

#include <gtest/gtest.h>

#include "lockstep/base/errors.h"
#include "lockstep/nn/stages.h"

namespace lockstep {
namespace {

class ForecastTest : public testing::Test {
 protected:
  ForecastTest() {
    train_.global_batch = 64;
    train_.replicas = 8;
    distribute_.strategy = "allreduce";
  }

  static ModelOptions model_options() {
    ModelOptions options;
    options.layers = "dense(64) relu dense(10)";
    return options;
  }

  Forecast run(Scaling scaling = Scaling::kStrong) const { return run_model(model_, scaling); }

  Forecast run_model(const Model& model, Scaling scaling,
                     std::span<const std::unique_ptr<Model>> stages = {}) const {
    return forecast({.model = model,
                     .train = train_,
                     .distribute = distribute_,
                     .measured = measured_,
                     .cluster = cluster_,
                     .optimizer = 1,
                     .stages = stages,
                     .stage_optimizers = std::vector<OptimizerMemory>(stages.size(), 1)},
                    scaling);
  }

  // In two stages.
  Forecast run_stages(const std::string& layers, const std::string& cut = "auto") const {
    const ModelOptions options{.layers = layers};
    const Model whole(options, Shape{{100}});
    std::vector<std::unique_ptr<Model>> stages;
    for (const Range ops : divide_model(whole, 2, std::vector<std::string>{cut})) {
      stages.push_back(std::make_unique<Model>(options, whole, ops));
    }
    return run_model(whole, Scaling::kStrong, stages);
  }

  Model model_{model_options(), Shape{{100}}};
  TrainOptions train_;
  DistOptions distribute_;
  BenchFigures measured_{
      .ranks = 2,
      .cores = 2,
      .work = {.replicas = 4, .rows = 8},
      .step = {.data = 1e-5, .forward = 2e-4, .backward = 4e-4, .optimizer = 5e-5, .waiting = 1e-5},
      .pass = TimeCurve({{1, 5e-5}, {8, 1.5e-4}}),
      .message = TimeCurve::line(1e-6, 1e10),
      .shared = TimeCurve::line(1e-6, 1e10),
      .add_bandwidth = 2e10};
  ClusterRequest cluster_{.nodes = 1, .ranks_per_node = 2, .latency = 1e-6, .bandwidth = 3e9};
};

TEST(ExposedSeconds, AreThoseBehindBackward) {
  // The first bucket leaves after one second of two; the second when backward is over.
  EXPECT_DOUBLE_EQ(exposed_seconds({1, 1}, {{.link = 0.5}, {.link = 0.25}}), 0.25);
  EXPECT_DOUBLE_EQ(exposed_seconds({1, 1}, {{.link = 3}, {.link = 0.25}}), 2.25);
  EXPECT_DOUBLE_EQ(exposed_seconds({1, 1}, {{.ranks = 0.5}, {.link = 0.25}}), 0.75) << "ranks cannot do both";
  EXPECT_DOUBLE_EQ(exposed_seconds({2}, {{.link = 3}}), 3) << "one bucket hides behind nothing";
  EXPECT_DOUBLE_EQ(exposed_seconds({}, {}), 0);
}

TEST_F(ForecastTest, GivesBackWhatWasMeasured) {
  const Forecast forecast = run();
  EXPECT_EQ(forecast.global_batch, 64);
  EXPECT_NEAR(forecast.compute, 6.6e-4, 1e-9);
  EXPECT_NEAR(forecast.waiting, 1e-5, 1e-12);
  EXPECT_NEAR(forecast.seconds(), forecast.compute + forecast.waiting + forecast.exposed, 1e-12);
  EXPECT_NEAR(forecast.efficiency(), forecast.compute / forecast.seconds(), 1e-12);
}

TEST_F(ForecastTest, StrongScalingDividesTheWork) {
  measured_.cores = 8;
  cluster_.ranks_per_node = 4;
  EXPECT_NEAR(run().compute, 6.1e-4 / 2 + 5e-5, 1e-9) << "all but the optimizer";
  cluster_.ranks_per_node = 9;
  EXPECT_THROW(run(), ConfigError) << "eight replicas";
  train_.replicas = 0;
  EXPECT_EQ(run().global_batch, 64);
  cluster_.ranks_per_node = 65;
  EXPECT_THROW(run(), ConfigError) << "64 samples";
}

// Of eight replicas on a rank, the busiest of 1, 2, 3, 4, 5 and 8 threads has 8, 4, 3, 2, 2 and 1.
TEST_F(ForecastTest, TheThreadWithMostReplicasMakesTheOthersWait) {
  measured_.cores = cluster_.cores = 8;
  cluster_.ranks_per_node = 1;
  const double one_thread = run().compute - 5e-5;
  for (const auto& [threads, replicas] :
       std::vector<std::pair<Index, double>>{{2, 4}, {3, 3}, {4, 2}, {5, 2}, {8, 1}}) {
    train_.threads = threads;
    EXPECT_NEAR((run().compute - 5e-5) / one_thread, replicas / 8, 1e-9) << threads << " threads";
  }
}

TEST_F(ForecastTest, SmallerBatchesAreLessEfficient) {
  measured_.cores = 8;
  train_.replicas = 0;
  cluster_.ranks_per_node = 8;  // one replica of 8 rows each, as with eight replicas
  const double eight = run().compute;
  cluster_.ranks_per_node = 64;  // one row each
  cluster_.cores = 64;
  EXPECT_NEAR((run().compute - 5e-5) / (eight - 5e-5), 5e-5 / 1.5e-4, 1e-9);
}

TEST_F(ForecastTest, WeakScalingKeepsTheWorkOfARank) {
  const double here = run(Scaling::kWeak).compute;
  for (const Index nodes : {1, 2, 64, 1024}) {
    cluster_.nodes = nodes;
    const Forecast forecast = run(Scaling::kWeak);
    EXPECT_NEAR(forecast.compute, here, 1e-12);
    EXPECT_EQ(forecast.global_batch, 2 * nodes * 32);
  }
}

TEST_F(ForecastTest, RanksBeyondCoresShareThem) {
  const double two = run(Scaling::kWeak).compute;
  cluster_.ranks_per_node = 4;
  EXPECT_NEAR(run(Scaling::kWeak).compute, 2 * two, 1e-12);
  EXPECT_EQ(run(Scaling::kWeak).oversubscription, 2);
  cluster_.cores = 4;
  EXPECT_NEAR(run(Scaling::kWeak).compute, two, 1e-12);
  measured_.ranks = 4;  // measured on crowded cores
  EXPECT_NEAR(run(Scaling::kWeak).compute, two / 2, 1e-12);
}

TEST_F(ForecastTest, OwnersShareTheOptimizer) {
  const double all = run().compute;
  distribute_.strategy = "central_storage";
  EXPECT_NEAR(run().compute, all - 5e-5 / 2, 1e-12);
  measured_.stepped = 0.5;
  EXPECT_NEAR(run().compute, all, 1e-12);
}

TEST_F(ForecastTest, ExchangeOvertakesOnASlowNetworkOnly) {
  cluster_.nodes = 16;
  cluster_.bandwidth = 1e11;
  EXPECT_FALSE(run(Scaling::kWeak).exchange_overtakes());
  double before = run(Scaling::kWeak).seconds();
  for (const double bandwidth : {1e10, 1e9, 1e8, 1e7}) {
    cluster_.bandwidth = bandwidth;
    const double seconds = run(Scaling::kWeak).seconds();
    EXPECT_GE(seconds, before);
    before = seconds;
  }
  EXPECT_TRUE(run(Scaling::kWeak).exchange_overtakes());
}

TEST_F(ForecastTest, SmallBucketsHide) {
  cluster_.nodes = 4;
  cluster_.bandwidth = 1e9;
  const Forecast one = run(Scaling::kWeak);
  EXPECT_NEAR(one.exposed, one.exchange, 1e-12);
  distribute_.bucket_kib = 1;
  const Forecast two = run(Scaling::kWeak);
  EXPECT_LT(two.exposed, two.exchange);
}

// On fast links only the last bucket is left when backward is over, and the others were sent meanwhile.
TEST_F(ForecastTest, ALayerInSeveralBucketsLeavesPieceByPiece) {
  const Model layer({.layers = "dense(4096)"}, Shape{{100}});
  cluster_ = {.nodes = 4, .ranks_per_node = 1, .latency = 1e-9, .bandwidth = 1e11};
  measured_.add_bandwidth = 1e15;  // what the ranks do themselves is never hidden
  constexpr Index kBuckets = 4;
  distribute_.bucket_kib = layer.layout().size * 4 / 1024 / kBuckets;
  distribute_.algorithm = "mpi";
  const Forecast four = forecast({.model = layer,
                                  .train = train_,
                                  .distribute = distribute_,
                                  .measured = measured_,
                                  .cluster = cluster_,
                                  .optimizer = 1},
                                 Scaling::kWeak);
  EXPECT_NEAR(four.exposed / four.exchange, 1.0 / kBuckets, 0.02);
}

TEST_F(ForecastTest, OneRankWaitsForNobody) {
  cluster_.ranks_per_node = 1;
  EXPECT_EQ(run().waiting, 0);
  EXPECT_EQ(run(Scaling::kWeak).waiting, 0);
  cluster_.nodes = 2;
  EXPECT_GT(run().waiting, 0);
}

// Two stages of equal work and one group: by (S - 1) / (m + S - 1) each is idle for one ninth.
TEST_F(ForecastTest, StagesAreIdleWhileThePipelineFills) {
  measured_.step = {.forward = 2e-4, .backward = 4e-4};
  measured_.message = measured_.shared = TimeCurve::line(1e-12, 1e15);
  const auto run_equal = [&] { return run_stages("dense(100) dense(100)"); };
  const Forecast one_group = run_equal();
  EXPECT_NEAR(one_group.compute, 6e-4, 1e-9) << "eight replicas, half of the work of each";
  EXPECT_NEAR(one_group.waiting / (one_group.compute + one_group.waiting), 1.0 / 9, 1e-6);
  EXPECT_NEAR(one_group.exposed, 0, 1e-9) << "each stage is on one rank";
  measured_.message = TimeCurve::line(1e-3, 1e15);
  EXPECT_NEAR(run_equal().compute + run_equal().waiting, 8 * 2e-3 + 6e-4 / 8 + 2e-3, 1e-9)
      << "the messages of eight micro-batches, both ways, are slower than the stages";
  cluster_ = {.nodes = 2, .ranks_per_node = 3, .latency = 1e-6, .bandwidth = 1e9, .cores = 4};
  EXPECT_THROW(run_equal(), ConfigError) << "a group on parts of two nodes";
  cluster_.ranks_per_node = 1;
  const double slow = run_equal().waiting;
  cluster_.bandwidth = 1e6;
  EXPECT_GT(run_equal().waiting, slow) << "activations cross the link";
}

// 40,000 bytes of weights once a step, and as many of gradients with each of eight micro-batches.
TEST_F(ForecastTest, StagesWaitForWeightsThatTheyShare) {
  measured_.message = measured_.shared = TimeCurve::line(1e-12, 1e9);
  const auto seconds = [&](const std::string& layers) { return run_stages(layers, "1").waiting; };
  EXPECT_NEAR(seconds("dense(100) dense(100, tie=0)") - seconds("dense(100) dense(100)"), 9 * 4e-5, 1e-9);
}

// Two groups of two stages on two nodes of two ranks. As neighbours a group is inside a node, and gradients
// cross the link; spread, activations do.
TEST_F(ForecastTest, PlacementSaysWhatCrossesTheLink) {
  measured_.message = measured_.shared = TimeCurve::line(1e-9, 1e12);
  cluster_ = {.nodes = 2, .ranks_per_node = 2, .latency = 1e-4, .bandwidth = 1e9, .cores = 4};
  const auto run_placed = [&](StagePlacement placement) {
    distribute_.placement = placement;
    return run_stages("dense(100) dense(100)");
  };
  const Forecast neighbours = run_placed(StagePlacement::kNeighbours);
  const Forecast spread = run_placed(StagePlacement::kSpread);
  EXPECT_GT(neighbours.exchange, 1e-4);
  EXPECT_LT(spread.exchange, 1e-4);
  EXPECT_LT(neighbours.waiting + 1e-4, spread.waiting);
}

// The samples, outputs and gradients of the layer are sent, not its weights.
TEST_F(ForecastTest, KnowsLayersThatRanksDivide) {
  distribute_.strategy = "zero1";
  const auto run_zero1 = [&](const std::string& layers) {
    return run_model(Model({.layers = layers}, Shape{{100}}), Scaling::kWeak);
  };
  cluster_ = {.nodes = 4, .ranks_per_node = 1, .latency = 1e-9, .bandwidth = 1e9};
  const Forecast whole = run_zero1("dense(2048) relu dense(4096)");
  const Forecast split = run_zero1("dense(2048) relu dense(4096, split=rows)");
  EXPECT_LT(split.exchange, whole.exchange / 2) << "eight million weights, against rows of few numbers";
  EXPECT_NEAR(split.compute, whole.compute, 1e-3 * whole.compute);
  cluster_.bandwidth = 1e12;
  cluster_.latency = 1;
  distribute_.bucket_kib = Index{1} << 20;  // all that is not split leaves at once
  EXPECT_GE(run_zero1("dense(2048) relu dense(4096, split=rows)").exposed -
                run_zero1("dense(2048) relu dense(4096)").exposed,
            4 - 1e-3)
      << "four exchanges at the layer, where all wait";
  EXPECT_GT(run_zero1("dense(2048) relu dense(1, split=rows)").compute,
            run_zero1("dense(2048) relu dense(1)").compute)
      << "one block, which one of the ranks computes for all";
}

TEST_F(ForecastTest, RefusesWhatItCannotSay) {
  distribute_.algorithm = "shared";
  cluster_.nodes = 2;
  EXPECT_THROW(run(Scaling::kWeak), ConfigError);
  distribute_.algorithm = "auto";
  measured_.message = TimeCurve();
  EXPECT_THROW(run(Scaling::kWeak), ConfigError) << "nothing was measured inside a node";
  cluster_.ranks_per_node = 1;
  EXPECT_GT(run(Scaling::kWeak).exchange, 0);
  distribute_ = {.strategy = "parameter_server", .servers = 2};
  EXPECT_THROW(run(Scaling::kWeak), ConfigError) << "no worker";
}

}  // namespace
}  // namespace lockstep
