// run.resume = "restart": the same command again from the beginning, and what was there is kept.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/saved_runs.h"
#include "support/small_experiment.h"
#include "support/trainer_process.h"

namespace lockstep::test {
namespace {

class Restart : public testing::Test {
 protected:
  std::string arguments(const std::string& run, const std::string& flags) const {
    return saving_arguments(experiment_, run, "--train.replicas 2 " + flags);
  }
  ProcessResult train(const std::string& run, const std::string& flags = "") const {
    return run_trainer(arguments(run, flags));
  }

  SmallExperiment experiment_;
};

constexpr const char* kRestart = "--run.resume restart ";

TEST_F(Restart, AfterARunThatDivergedTheSameCommandBeginsAgain) {
  const std::string run = experiment_.fresh_run();
  EXPECT_EQ(train(run, "--debug.nan_replica 0 --debug.nan_step 7").exit_code, kExitTraining);
  const ProcessResult refused = train(run, "--train.lr 0.01");
  EXPECT_EQ(refused.exit_code, kExitConfig);
  expect_parts(refused.errors, {"train.lr was 0.05, is 0.01", "run.resume = \"restart\""});

  const std::string first = model_of(run);
  const ProcessResult again = train(run + "/", std::string("--train.lr 0.01 ") + kRestart);
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  expect_parts(again.output, {"is in '" + run + ".1' now"});
  EXPECT_TRUE(model_of(run + ".1") == first);
  EXPECT_EQ(newest_checkpoint(run + ".1"), 6);
  EXPECT_EQ(newest_checkpoint(run), 9);
  EXPECT_EQ(read_file(run + "/config.toml").find("restart"), std::string::npos) << "it would do so each time";

  const std::string second = model_of(run);
  const ProcessResult third = run_trainer(2, arguments(run, std::string("--train.lr 0.02 ") + kRestart));
  EXPECT_EQ(third.exit_code, 0) << third.errors;
  EXPECT_TRUE(model_of(run + ".2") == second);
  const std::string fresh = experiment_.fresh_run();
  EXPECT_EQ(train(fresh, kRestart).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(fresh + ".1"));
}

TEST_F(Restart, MovesNothingThatIsNoRunOrIsAtWork) {
  const std::string foreign = experiment_.fresh_run();
  std::filesystem::create_directory(foreign);
  write_file_atomically(foreign + "/thesis.txt", "years of work");
  const ProcessResult refused = run_trainer(2, arguments(foreign, kRestart));
  EXPECT_EQ(refused.exit_code, kExitConfig);
  expect_parts(refused.errors, {"not the directory of a run", "thesis.txt"});
  EXPECT_EQ(read_file(foreign + "/thesis.txt"), "years of work");

  const std::string run = experiment_.fresh_run();
  const ProcessResult busy = run_command(fmt::format(
      "{} {} >/dev/null 2>&1 & job=$!; for i in $(seq 1000); do [ -s {}/metrics.jsonl ] && break; sleep "
      "0.01; "
      "done; {} {}; code=$?; kill -TERM $job; wait $job; exit $code",
      trainer_path(), arguments(run, "--debug.delay_rank 0 --debug.delay_ms 50 --train.epochs 100"), run,
      trainer_path(), arguments(run, kRestart)));
  EXPECT_EQ(busy.exit_code, kExitConfig);
  expect_parts(busy.errors, {"another trainer works in run.dir"});
  EXPECT_FALSE(std::filesystem::exists(run + ".1"));
}

TEST_F(Restart, AStartThatFailsLeavesAllInItsPlace) {
  const std::string run = experiment_.fresh_run();
  EXPECT_EQ(train(run).exit_code, 0);
  const std::string model = model_of(run);
  const std::string weights = experiment_.directory() / "no.safetensors";
  for (const std::string& flags :
       {"--train.init " + weights, std::string("--train.momentum 7"), "--data.train " + weights}) {
    EXPECT_NE(train(run, kRestart + flags).exit_code, 0);
    EXPECT_TRUE(model_of(run) == model) << flags;
    EXPECT_FALSE(std::filesystem::exists(run + ".1")) << flags;
  }
  const std::string checkpoints = "--checkpoint.dir " + run + "-checkpoints ";
  const std::string other = experiment_.fresh_run();
  EXPECT_EQ(train(other, checkpoints).exit_code, 0);
  const ProcessResult mixed = train(other, checkpoints + kRestart);
  EXPECT_EQ(mixed.exit_code, kExitConfig);
  expect_parts(mixed.errors, {"name another checkpoint.dir"});
}

}  // namespace
}  // namespace lockstep::test
