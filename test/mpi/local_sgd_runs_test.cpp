// Local SGD in whole trainings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/errors.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::local_sgd_runs_test {
namespace {

using test::set_keys;
using test::tiny_config;
using test::TinyResult;
using test::train_tiny;
using test::train_tiny_alone;

Config local_config() {
  Config config = tiny_config();
  config.distribute.strategy = "local_sgd";
  return config;
}

double largest_difference(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(LocalSgdRuns, AveragingPlainSgdAfterEachStepIsAllreduceWhereReplicasHaveEqualSamples) {
  Config config = local_config();
  set_keys(config,
           "data.synthetic_rows=96; train.global_batch=24; train.momentum=0; distribute.average_every=1");
  Config other = config;
  other.distribute.strategy = "allreduce";
  const TinyResult allreduce = train_tiny_alone(other);
  for (const Reduction reduction : {Reduction::kOrdered, Reduction::kNative}) {
    config.distribute.reduction = reduction;
    test::on_ranks([&](Communicator& comm) {
      EXPECT_LT(largest_difference(train_tiny(comm, config).weights, allreduce.weights), 1e-6);
    });
  }
  config.distribute.average_every = 4;
  EXPECT_GT(largest_difference(train_tiny_alone(config).weights, allreduce.weights), 1e-4);
}

TEST(LocalSgdRuns, UntilLocalAfterItIsAllreduce) {
  Config config = local_config();
  set_keys(config, "train.optimizer=adam; train.clip_norm=0.5");
  config.data.synthetic.rows = 83;  // a short last batch, with empty replicas
  Config other = config;
  other.distribute.strategy = "allreduce";
  const TinyResult allreduce = train_tiny_alone(other);
  for (const char* time : {"15 steps", "249 samples", "3 epochs", "100 epochs"}) {
    config.distribute.local_after = time;
    test::on_ranks([&](Communicator& comm) {
      const TinyResult result = train_tiny(comm, config);
      EXPECT_EQ(result.weights, allreduce.weights) << time;
      if (comm.rank() == 0) {
        EXPECT_EQ(result.losses, allreduce.losses);
      }
      Config native = config;
      native.distribute.reduction = Reduction::kNative;
      EXPECT_LT(largest_difference(train_tiny(comm, native).weights, allreduce.weights), 1e-4);
    });
  }
  config.distribute.local_after = "2 epochs";
  EXPECT_GT(largest_difference(train_tiny_alone(config).weights, allreduce.weights), 1e-4);
}

// The weights at the end are the same whether an interval ends there or not, so the moments must be too.
TEST(LocalSgdRuns, PreciseBatchNormMeasuresTheSettledWeights) {
  Config config = local_config();
  set_keys(config,
           "model.layers=dense(9) batch_norm relu dense(3); train.epochs=0; train.steps=5; "
           "eval.precise_bn=4; distribute.average_every=5");
  Config longer = config;
  longer.distribute.average_every = 6;
  test::on_ranks([&](Communicator& comm) {
    const TinyResult met = train_tiny(comm, config);
    const TinyResult open = train_tiny(comm, longer);
    EXPECT_EQ(open.weights, met.weights);
    EXPECT_EQ(open.state, met.state);
    EXPECT_EQ(open.training.evaluation()->loss, met.training.evaluation()->loss);
  });
}

TEST(LocalSgdRuns, ALossThatIsNotANumberStopsAllRanksAlike) {
  Config config = local_config();
  set_keys(config, "model.layers=dense(9) dense(3); train.lr=1e6");
  for (const Index every : {4, 1000}) {  // at an average, and at the end of the run
    config.distribute.average_every = every;
    std::string alone;
    try {
      train_tiny_alone(config);
    } catch (const Error& error) {
      alone = error.what();
    }
    EXPECT_TRUE(alone.starts_with("step ")) << alone;
    EXPECT_NE(alone.find(": replica "), std::string::npos) << alone;
    test::on_ranks([&](Communicator& comm) {
      try {
        train_tiny(comm, config);
        FAIL() << "training went on";
      } catch (const Error& error) {
        EXPECT_EQ(error.exit_code(), kExitTraining);
        EXPECT_EQ(error.what(), alone);
      }
    });
  }
}

TEST(LocalSgdRuns, RefusesBatchNormOverReplicas) {
  for (const char* mode : {"averaged", "sync", "group(2)"}) {
    Config config = local_config();
    config.model.layers = "dense(9) batch_norm dense(3)";
    config.model.batch_norm = mode;
    EXPECT_THROW(train_tiny_alone(config), ConfigError) << mode;
  }
}

}  // namespace
}  // namespace lockstep::local_sgd_runs_test
