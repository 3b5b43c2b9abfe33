// The promise of the executable: the same config gives the same model, byte for byte, on any number of ranks
// and threads. strategies_test holds all strategies to it on each number; what is added here is the way from
// a config and files to that, so that numbers of ranks take turns; and layers whose units the ranks divide.
#include "lockstep/distributed/strategies/strategy.h"
#include "support/trainer_runs.h"

namespace lockstep::test::same_bits_test {
namespace {

struct Setting {
  std::string mode;
  std::string optimizer;                   // flags
  std::vector<std::pair<int, int>> sizes;  // ranks, and threads of each
};

class OrderedRuns : public SmallRuns {
 protected:
  OrderedRuns() : SmallRuns("--distribute.reduction ordered") {}
  std::string model(int ranks, int threads, const std::string& flags) const {
    return model_of(trained(ranks, fmt::format("--train.threads {} {}", threads, flags)));
  }
};

class SameBits : public OrderedRuns, public testing::WithParamInterface<Setting> {
 protected:
  std::string model(int ranks, int threads, const std::string& flags) const {
    return OrderedRuns::model(ranks, threads, fmt::format("--data.mode {} {}", GetParam().mode, flags));
  }
};

TEST_P(SameBits, OnAnyNumberOfRanksAndThreads) {
  const std::string alone = model(1, 1, GetParam().optimizer);
  EXPECT_GT(alone.size(), 1000U);
  for (const auto& [ranks, threads] : GetParam().sizes)
    EXPECT_TRUE(model(ranks, threads, GetParam().optimizer) == alone) << ranks << " ranks, " << threads;
}

class AugmentedBits : public SameBits {};

TEST_P(AugmentedBits, OnAnyNumberOfRanksAndPrefetchedSteps) {
  const std::string flags = "--data.augment 'crop(1) flip cutout(2)' ";
  const std::string alone = model(1, 1, flags);
  EXPECT_TRUE(model(3, 2, flags + "--data.prefetch 5") == alone);
  EXPECT_FALSE(model(1, 1, "") == alone) << "nothing was augmented";
}

class SameBitsOfStrategies : public OrderedRuns {};

TEST_F(SameBitsOfStrategies, WhereverReplicasStepAlone) {
  const std::string local =
      "--train.momentum 0.9 --distribute.strategy local_sgd --distribute.average_every 4 "
      "--distribute.average_state true --distribute.local_after '3 steps' --distribute.block_momentum 0.5 ";
  const std::string dense = local + "--model.layers 'dense(16) relu dense(10)'";
  EXPECT_TRUE(model(3, 1, dense) == model(1, 1, dense));
  const std::string images = local + "--model.layers 'conv2d(8, 3) relu conv2d(8, 1) flatten dense(10)'";
  const std::string alone = model(1, 1, images);
  EXPECT_TRUE(model(2, 1, images) == alone);
  EXPECT_TRUE(model(4, 2, images) == alone);
}

// Every strategy with both optimizers, on two of the numbers of workers, and with two servers beside them if
// it has servers.
TEST_F(SameBitsOfStrategies, WhoeverOwnsWhat) {
  for (const std::string optimizer : {"sgd --train.momentum 0.9", "adam"}) {
    const std::string flags =
        fmt::format("--train.clip_norm 0.5 --train.optimizer {} --distribute.strategy ", optimizer);
    const std::string alone = model(1, 1, flags + "allreduce");
    for (int turn = optimizer == "adam" ? 2 : 0; const StrategyEntry& entry : strategy_catalog()) {
      if (!entry.promises.same_bits) continue;
      const std::string strategy = entry.name + (entry.has_servers ? " --distribute.servers 2" : "");
      const int workers = 1 + ++turn % 4;
      EXPECT_TRUE(model(workers + (entry.has_servers ? 2 : 0), 1, flags + strategy) == alone)
          << strategy << ", " << optimizer << ", " << workers << " workers";
    }
    if (optimizer == "adam") {
      EXPECT_TRUE(model(4, 1, flags + "central_storage --debug.ranks_per_node 2") == alone);
    }
  }
}

class SameBitsOfLayers : public OrderedRuns {};

// Layers that are not the same for each sample: batch statistics and random masks.
TEST_F(SameBitsOfLayers, WithBatchNormAndDropout) {
  for (const std::string mode : {"local", "averaged", "sync", "group(3)"}) {
    const std::string flags = fmt::format(
        "--model.batch_norm '{}' --model.layers 'conv2d(4, 3, padding=same) batch_norm relu dropout(0.1) "
        "flatten dense(8) batch_norm relu dense(4)'",
        mode);
    const std::string alone = model(1, 1, flags);
    EXPECT_TRUE(model(3, 2, flags) == alone) << mode;
    if (mode == "group(3)") {  // three ranks have whole groups, four part them
      EXPECT_TRUE(model(4, 1, flags) == alone) << mode;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, AugmentedBits,
                         testing::Values(Setting{"shard", "", {}}, Setting{"full", "", {}}),
                         [](const auto& test) { return test.param.mode; });

INSTANTIATE_TEST_SUITE_P(
    Settings, SameBits,
    testing::Values(Setting{"shard", "--train.momentum 0.9", {{1, 2}, {2, 1}, {3, 2}, {4, 1}, {8, 1}}},
                    Setting{"full", "--train.momentum 0.9", {{2, 2}, {3, 1}}},
                    Setting{"shard", "--train.optimizer adam", {{4, 2}, {3, 1}}},
                    Setting{"full", "--train.optimizer adam", {{2, 2}, {8, 1}}}),
    [](const auto& test) {
      return test.param.mode + (test.param.optimizer.ends_with("adam") ? "Adam" : "Momentum");
    });

// The first split layer has four blocks of units, the second one.
constexpr const char* kHybrid =
    "--model.layers 'conv2d(4, 3, padding=same) relu maxpool(2) flatten dense(64) relu dense(64, split=rows) "
    "relu dense(24, split=rows) tanh dense(4)' ";

class DividedRuns : public SmallRuns {
 protected:
  DividedRuns() : SmallRuns(std::string("--distribute.reduction ordered ") + kHybrid) {}
};

TEST_F(DividedRuns, HaveTheBytesOfOneRank) {
  const std::string flags = "--train.optimizer adam --train.clip_norm 0.5 ";
  const std::string alone = trained(1, flags);
  for (const int ranks : {2, 4}) {
    for (const std::string strategy : {"zero1", "allreduce", "central_storage"}) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, strategy));
      const std::string run = trained(ranks, flags + "--distribute.strategy " + strategy);
      expect_same_run(run, alone);
    }
  }
}

TEST_F(DividedRuns, GoOnOnOtherRanks) {
  const std::string flags =
      "--train.optimizer adam --checkpoint.every '5 steps' --checkpoint.wait true --distribute.strategy "
      "zero1 ";
  const std::string whole = trained(1, flags);
  const std::string run = experiment_.fresh_run();
  go_on(4, run, flags, 7);
  go_on(1, run, flags, 12);
  go_on(2, run, flags, 0);
  expect_same_run(run, whole);
}

TEST_F(DividedRuns, StopAtABadNumber) {
  const auto stopped = [&](int ranks) {
    const ProcessResult result = ended_with(
        run_trainer(ranks, words(experiment_.fresh_run(),
                                 "--distribute.strategy zero1 --debug.nan_replica 1 --debug.nan_step 3")),
        kExitTraining);
    const std::size_t begin = result.errors.find("the loss is ");
    return begin == std::string::npos ? result.errors
                                      : result.errors.substr(begin, result.errors.find('\n', begin) - begin);
  };
  EXPECT_EQ(stopped(2), stopped(1));
}

TEST_F(DividedRuns, ArePlannedAndRefused) {
  const auto plan = [&](const std::string& flags) {
    return run_trainer(fmt::format("plan --np 4 --config {} {}{}", experiment_.config(), kHybrid, flags));
  };
  expect_parts(plan("--distribute.strategy zero1").output,
               {"The ranks divide the weights of the 2 layers with split=rows"});
  expect_parts(plan("--distribute.strategy allreduce").output,
               {"Each rank computes the 2 layers with split=rows by itself", "zero1"});
  expect_failed(plan("--distribute.strategy zero1 --train.accumulate 2"), kExitConfig,
                {"split=rows", "train.accumulate", "set train.accumulate = 1"});
}

}  // namespace
}  // namespace lockstep::test::same_bits_test
