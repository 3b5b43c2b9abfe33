// What a step takes elsewhere: what scales with what, what is hidden, and what is refused.
#include "lockstep/train/plan/forecast.h"

#include <gtest/gtest.h>

#include "lockstep/base/errors.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {
namespace {

// alpha + beta n
TimeCurve line(double latency, double bandwidth) {
  return TimeCurve({{.amount = 0, .seconds = latency}, {.amount = bandwidth, .seconds = latency + 1}});
}

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

  Forecast run_model(const Model& model, Scaling scaling) const {
    return forecast({.model = model,
                     .train = train_,
                     .distribute = distribute_,
                     .measured = measured_,
                     .cluster = cluster_,
                     .optimizer = 1},
                    scaling);
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
      .message = line(1e-6, 1e10),
      .shared = line(1e-6, 1e10)};
  ClusterRequest cluster_{.nodes = 1, .ranks_per_node = 2, .latency = 1e-6, .bandwidth = 3e9};
};

TEST(TimeCurve, FollowsItsPoints) {
  const TimeCurve curve({{10, 1}, {20, 3}, {30, 2}, {40, 5}});
  EXPECT_DOUBLE_EQ(curve.seconds(0), 1);
  EXPECT_DOUBLE_EQ(curve.seconds(15), 2);
  EXPECT_DOUBLE_EQ(curve.seconds(25), 3) << "more bytes do not take less time";
  EXPECT_DOUBLE_EQ(curve.seconds(50), 7);
  EXPECT_DOUBLE_EQ(TimeCurve().seconds(50), 0);
}

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
  const double crowded = run(Scaling::kWeak).exchange;
  EXPECT_EQ(run(Scaling::kWeak).oversubscription, 2);
  cluster_.cores = 4;
  EXPECT_NEAR(run(Scaling::kWeak).compute, two, 1e-12);
  EXPECT_NEAR(run(Scaling::kWeak).exchange, crowded / 2, 1e-12) << "inside a node";
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
  const auto overtakes = [&] { return run(Scaling::kWeak).exchange > run(Scaling::kWeak).compute; };
  EXPECT_FALSE(overtakes());
  double before = run(Scaling::kWeak).seconds();
  for (const double bandwidth : {1e10, 1e9, 1e8, 1e7}) {
    cluster_.bandwidth = bandwidth;
    const double seconds = run(Scaling::kWeak).seconds();
    EXPECT_GE(seconds, before);
    before = seconds;
  }
  EXPECT_TRUE(overtakes());
}

TEST_F(ForecastTest, MoreBandwidthIsNeverSlowerAndMoreLatencyNeverFaster) {
  for (const StrategyEntry& strategy : strategy_catalog()) {
    for (const AlgorithmEntry& algorithm : algorithm_catalog()) {
      for (const Index on_node : {1, 3, 4}) {
        distribute_ = {.strategy = strategy.name, .algorithm = algorithm.name};
        cluster_ = {.nodes = 3, .ranks_per_node = on_node};
        if (!algorithm.refusal({3, on_node}).empty()) continue;
        SCOPED_TRACE(testing::Message() << strategy.name << " " << algorithm.name << ", " << on_node);
        double before = 0;
        for (const double bandwidth : {1e10, 1e9, 1e8}) {
          cluster_.bandwidth = bandwidth;
          cluster_.latency = 1e-6;
          const double seconds = run(Scaling::kWeak).exchange;
          EXPECT_GT(seconds, before);
          cluster_.latency = 2e-6;
          EXPECT_GE(run(Scaling::kWeak).exchange, seconds);
          before = seconds;
        }
      }
    }
  }
}

// A flat ring of four nodes: six messages of a quarter of the bytes each.
TEST_F(ForecastTest, TheExchangeIsAlphaAndBeta) {
  cluster_ = {.nodes = 4, .ranks_per_node = 1, .latency = 1e-5, .bandwidth = 1e8};
  distribute_.algorithm = "ring";
  const double bytes = 4 * static_cast<double>(model_.layout().size);
  EXPECT_NEAR(run().exchange, 6 * 1e-5 + 1.5 * bytes / 1e8, 1e-2 * run().exchange);
  cluster_.ranks_per_node = 2;
  distribute_.algorithm = "hierarchical";
  const double inside = 1e-6 + bytes / 1e10;
  EXPECT_NEAR(run().exchange, inside + 4 * 1e-5 + 1.5 * bytes / 1e8, 1e-2 * run().exchange)
      << "the two ranks of a node send a half each, over one link";
}

// By the rule of a run that does not calibrate.
TEST_F(ForecastTest, AutoIsWhatTheRuleTakes) {
  cluster_ = {.nodes = 4, .ranks_per_node = 2, .latency = 1e-5, .bandwidth = 1e8};
  const double automatic = run().exchange;
  distribute_.algorithm = algorithm_by_rule({.count = 4, .largest = 2}).name;
  EXPECT_EQ(run().exchange, automatic);
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
