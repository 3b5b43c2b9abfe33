// Every promise of every strategy in the catalog, on whole trainings.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/dist/strategy.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep {
namespace {

using test::tiny_config;
using test::TinyResult;
using test::train_tiny;
using test::train_tiny_alone;

struct Case {
  std::string name;
  Config config;
};

// What a user may combine with any strategy.
std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const auto& change) {
    Case one{name, tiny_config()};
    change(one.config);
    all.push_back(one);
  };
  add("sgd momentum, shard", [](Config&) {});
  add("adam, shard", [](Config& c) { c.optimizer.optimizer = "adam"; });
  add("lamb", [](Config& c) { c.optimizer.optimizer = "lamb"; });
  add("sgd momentum, full", [](Config& c) { c.data.mode = DataMode::kFull; });
  add("adam, full", [](Config& c) {
    c.data.mode = DataMode::kFull;
    c.optimizer.optimizer = "adam";
  });
  add("replicas that no rank count divides", [](Config& c) { c.train.replicas = 11; });
  add("short last batch with empty replicas", [](Config& c) {
    c.data.synthetic.rows = 83;  // four batches of 20 and one of 3 samples for 8 replicas
  });
  add("tail dropped", [](Config& c) { c.train.tail = Tail::kDrop; });
  add("a bucket for each layer", [](Config& c) { c.distribute.bucket_kib = 0; });
  add("clipping, decay, accumulation", [](Config& c) {
    c.optimizer.clip_norm = 0.5;
    c.optimizer.weight_decay = 0.01;
    c.train.accumulate = 2;
  });
  return all;
}

void expect_close(const std::vector<Scalar>& a, const std::vector<Scalar>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(static_cast<double>(b[i])))) << "weight " << i;
  }
}

TEST(Strategies, SameBitsOnAnyNumberOfRanksAndThreads) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    if (!entry.promises.same_bits) continue;
    for (const Case& one : cases()) {
      SCOPED_TRACE(entry.name + ": " + one.name);
      Config config = one.config;
      config.distribute.strategy = entry.name;
      const TinyResult alone = train_tiny_alone(config);
      test::on_ranks([&](Communicator& comm) {
        for (const Index threads : {1, 2}) {
          if (config.train.replicas / comm.size() < threads) continue;
          Config here = config;
          here.train.threads = threads;
          const TinyResult result = train_tiny(comm, here);
          EXPECT_EQ(result.weights, alone.weights) << threads << " threads";
          EXPECT_EQ(result.training.last_evaluation->loss, alone.training.last_evaluation->loss);
          if (comm.rank() == 0) {
            EXPECT_EQ(result.losses, alone.losses);
          }
        }
      });
    }
  }
}

TEST(Strategies, NativeReductionIsCloseToOrderedAndReplicasAreIdentical) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    if (!entry.promises.identical_replicas) continue;
    for (const Case& one : cases()) {
      SCOPED_TRACE(entry.name + ": " + one.name);
      Config config = one.config;
      config.distribute.strategy = entry.name;
      const TinyResult ordered = train_tiny_alone(config);
      config.distribute.reduction = Reduction::kNative;
      test::on_ranks([&](Communicator& comm) {
        const TinyResult result = train_tiny(comm, config);
        expect_close(result.weights, ordered.weights, 1e-4);
        std::vector<Scalar> first = result.weights;
        comm.broadcast(as_buffer(std::span(first)), 0);
        EXPECT_EQ(first, result.weights) << "replicas differ";
      });
    }
  }
}

// Gives one replica all the samples of R replicas, replica after replica.
class MergedSampler final : public Sampler {
 public:
  MergedSampler(SamplingOptions options, Index replicas) : replicas_(replicas) {
    options.replicas = replicas;
    inner_ = make_sampler(options);
  }
  const EpochPlan& epoch() const override { return inner_->epoch(); }
  Index count(Index step, Index) const override { return inner_->step_samples(step); }
  Index largest_count() const override { return inner_->largest_count() * replicas_; }
  Index step_samples(Index step) const override { return inner_->step_samples(step); }
  Index samples_before(Index step) const override { return inner_->samples_before(step); }
  void ids(Index step, Index, std::vector<Index>& out) const override {
    out.clear();
    std::vector<Index> part;
    for (Index replica = 0; replica < replicas_; ++replica) {
      inner_->ids(step, replica, part);
      out.insert(out.end(), part.begin(), part.end());
    }
  }
  bool needs(Index, Range) const override { return true; }
  Index needed(Range) const override { return 101; }

 private:
  Index replicas_;
  std::unique_ptr<Sampler> inner_;
};

TEST(Strategies, AStepOfManyReplicasIsTheStepOfOneOnTheSameSamples) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    SCOPED_TRACE(entry.name);
    Config config = tiny_config();
    config.distribute.strategy = entry.name;
    config.train.epochs = 0;
    config.train.steps = 1;  // per step: rounding must not pile up
    for (const DataMode mode : {DataMode::kShard, DataMode::kFull}) {
      config.data.mode = mode;
      Config single = config;
      single.train.replicas = 1;
      const TinyResult one = train_tiny_alone(single, [&](const SamplingOptions& options) {
        return std::make_unique<MergedSampler>(options, config.train.replicas);
      });
      for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered}) {
        config.distribute.reduction = reduction;
        test::on_ranks([&](Communicator& comm) {
          const TinyResult many = train_tiny(comm, config);
          expect_close(many.weights, one.weights, 1e-6);
        });
      }
    }
  }
}

TEST(Strategies, AccumulationChangesOnlyTheRounding) {
  Config config = tiny_config();
  config.train.epochs = 0;
  config.train.steps = 1;
  const TinyResult whole = train_tiny_alone(config);
  for (const Index parts : {2, 3, 100}) {
    config.train.accumulate = parts;
    expect_close(train_tiny_alone(config).weights, whole.weights, 1e-6);
  }
}

TEST(Strategies, EachTestSampleIsEvaluatedOnce) {
  test::on_ranks([](Communicator& comm) {
    Config config = tiny_config();
    config.train.epochs = 0;
    config.train.steps = 1;
    const EvalMetrics metrics = *train_tiny(comm, config).training.last_evaluation;
    EXPECT_EQ(metrics.samples, 53);
    Index counted = 0;
    Index right = 0;
    for (std::size_t i = 0; i < metrics.confusion.size(); ++i) {
      counted += metrics.confusion[i];
      if (i / 3 == i % 3) right += metrics.confusion[i];
    }
    EXPECT_EQ(counted, 53);
    EXPECT_DOUBLE_EQ(*metrics.accuracy, static_cast<double>(right) / 53);
    EXPECT_GE(*metrics.top_k_accuracy, *metrics.accuracy);
  });
}

TEST(Strategies, ALossThatIsNotANumberStopsAllRanksWithStepAndLayer) {
  test::on_ranks([](Communicator& comm) {
    Config config = tiny_config();
    config.schedule.lr = 1e30;
    config.model.layers = "dense(9) dense(7) dense(3)";  // no tanh, which is finite at infinity
    try {
      train_tiny(comm, config);
      FAIL() << "training went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitTraining);
      EXPECT_NE(std::string(error.what()).find("layer"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("step 2"), std::string::npos) << error.what();
    }
  });
}

TEST(Strategies, TrainingLearns) {
  Config config = tiny_config();
  config.train.epochs = 30;
  const TinyResult result = train_tiny_alone(config);
  EXPECT_LT(result.losses.back(), 0.5 * result.losses.front());
  EXPECT_GT(*result.training.last_evaluation->accuracy, 0.6);
}

}  // namespace
}  // namespace lockstep
