// Layers whose units the ranks divide (dense with split=rows), from the executable: the bytes of the model
// are those of one rank.
#include "support/saved_runs.h"
#include "support/small_experiment.h"
#include "support/trainer_runs.h"

namespace lockstep::test::divided_runs_test {
namespace {

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
  const auto go_on = [&](int ranks, int fails_at) {
    const std::string fails =
        fails_at > 0 ? fmt::format("--debug.fail_rank {} --debug.fail_step {}", ranks - 1, fails_at) : "";
    const ProcessResult result = run_trainer(ranks, words(run, flags + fails));
    EXPECT_EQ(result.exit_code == 0, fails_at == 0) << result.errors << result.output;
  };
  go_on(4, 7);
  go_on(1, 12);
  go_on(2, 0);
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
}  // namespace lockstep::test::divided_runs_test
