// The promise of the executable: the same config gives the same model, byte for byte, on any number of ranks
// and threads. strategies_test holds all strategies to it on each number; what is added here is the way from
// a config and files to that, so that numbers of ranks take turns.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "support/small_experiment.h"
#include "support/trainer_process.h"

namespace lockstep::test::same_bits_test {
namespace {

struct Setting {
  std::string mode;
  std::string optimizer;                   // flags
  std::vector<std::pair<int, int>> sizes;  // ranks, and threads of each
};

class SameBits : public testing::TestWithParam<Setting> {
 protected:
  std::string model_of(int ranks, int threads) {
    const std::string run = experiment_.fresh_run();
    const std::string arguments = fmt::format(
        "--config {} --run.dir {} --distribute.reduction ordered --data.mode {} {} --train.threads {}",
        experiment_.config(), run, GetParam().mode, GetParam().optimizer, threads);
    const ProcessResult result = run_trainer(ranks, arguments);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return read_file(run + "/model.safetensors");
  }

  SmallExperiment experiment_;
};

TEST_P(SameBits, OnAnyNumberOfRanksAndThreads) {
  const std::string alone = model_of(1, 1);
  EXPECT_GT(alone.size(), 1000U);
  for (const auto& [ranks, threads] : GetParam().sizes) {
    EXPECT_EQ(model_of(ranks, threads) == alone, true) << ranks << " ranks, " << threads << " threads";
  }
}

class AugmentedBits : public SameBits {
 protected:
  std::string augmented_model(int ranks, const std::string& flags) {
    const std::string run = experiment_.fresh_run();
    const ProcessResult result =
        run_trainer(ranks, fmt::format("--config {} --run.dir {} --distribute.reduction ordered "
                                       "--data.augment 'crop(1) flip cutout(2)' --data.mode {} {}",
                                       experiment_.config(), run, GetParam().mode, flags));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return read_file(run + "/model.safetensors");
  }
};

TEST_P(AugmentedBits, OnAnyNumberOfRanksAndPrefetchedSteps) {
  const std::string alone = augmented_model(1, "");
  EXPECT_EQ(augmented_model(3, "--data.prefetch 5 --train.threads 2") == alone, true);
  EXPECT_EQ(model_of(1, 1) == alone, false) << "nothing was augmented";
}

TEST(SameBitsOfStrategies, WhereverReplicasStepAlone) {
  const SmallExperiment experiment;
  const auto model_of = [&](const std::string& layers, int ranks, int threads) {
    const std::string run = experiment.fresh_run();
    const ProcessResult result = run_trainer(
        ranks, fmt::format("--config {} --run.dir {} --distribute.reduction ordered --train.threads {} "
                           "--train.momentum 0.9 --distribute.strategy local_sgd "
                           "--distribute.average_every 4 --distribute.average_state true "
                           "--distribute.local_after '3 steps' --distribute.block_momentum 0.5 "
                           "--model.layers '{}'",
                           experiment.config(), run, threads, layers));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return read_file(run + "/model.safetensors");
  };
  const std::string dense = "dense(16) relu dense(10)";
  EXPECT_EQ(model_of(dense, 3, 1) == model_of(dense, 1, 1), true);
  const std::string images = "conv2d(8, 3) relu conv2d(8, 1) flatten dense(10)";
  const std::string alone = model_of(images, 1, 1);
  EXPECT_EQ(model_of(images, 2, 1) == alone, true);
  EXPECT_EQ(model_of(images, 4, 2) == alone, true);
}

// Every strategy with both optimizers, on two of the numbers of workers, and with two servers beside them if
// it has servers.
TEST(SameBitsOfStrategies, WhoeverOwnsWhat) {
  const SmallExperiment experiment;
  for (const std::string optimizer : {"sgd --train.momentum 0.9", "adam"}) {
    const auto model_of = [&](int ranks, const std::string& strategy) {
      const std::string run = experiment.fresh_run();
      const ProcessResult result = run_trainer(
          ranks, fmt::format("--config {} --run.dir {} --distribute.reduction ordered "
                             "--train.clip_norm 0.5 --train.optimizer {} --distribute.strategy {}",
                             experiment.config(), run, optimizer, strategy));
      EXPECT_EQ(result.exit_code, 0) << result.errors;
      return read_file(run + "/model.safetensors");
    };
    const std::string alone = model_of(1, "allreduce");
    for (int turn = optimizer == "adam" ? 2 : 0; const StrategyEntry& entry : strategy_catalog()) {
      if (!entry.promises.same_bits) continue;
      const std::string strategy = entry.name + (entry.has_servers ? " --distribute.servers 2" : "");
      const int workers = 1 + ++turn % 4;
      EXPECT_EQ(model_of(workers + (entry.has_servers ? 2 : 0), strategy) == alone, true)
          << strategy << ", " << optimizer << ", " << workers << " workers";
    }
    if (optimizer == "adam") {
      EXPECT_EQ(model_of(4, "central_storage --debug.ranks_per_node 2") == alone, true);
    }
  }
}

// Layers that are not the same for each sample: batch statistics and random masks.
TEST(SameBitsOfLayers, WithBatchNormAndDropout) {
  const SmallExperiment experiment;
  for (const std::string mode : {"local", "averaged", "sync", "group(3)"}) {
    const auto model_of = [&](int ranks, int threads) {
      const std::string run = experiment.fresh_run();
      const ProcessResult result = run_trainer(
          ranks,
          fmt::format("--config {} --run.dir {} --distribute.reduction ordered --model.batch_norm '{}' "
                      "--model.layers 'conv2d(4, 3, padding=same) batch_norm relu dropout(0.1) flatten "
                      "dense(8) batch_norm relu dense(4)' --train.threads {}",
                      experiment.config(), run, mode, threads));
      EXPECT_EQ(result.exit_code, 0) << result.errors;
      return read_file(run + "/model.safetensors");
    };
    const std::string alone = model_of(1, 1);
    EXPECT_EQ(model_of(3, 2) == alone, true) << mode;
    if (mode == "group(3)") {  // three ranks have whole groups, four part them
      EXPECT_EQ(model_of(4, 1) == alone, true) << mode;
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

}  // namespace
}  // namespace lockstep::test::same_bits_test
