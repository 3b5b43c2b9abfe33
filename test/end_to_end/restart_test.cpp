// run.resume = "restart": the same command again from the beginning, and what was there is kept.
#include "support/file_faults.h"
#include "support/trainer_runs.h"

namespace lockstep::test::restart_test {
namespace {

class Restart : public SmallRuns {
 protected:
  std::string arguments(const std::string& run, const std::string& flags) const {
    return saving_arguments(experiment_, run, "--train.replicas 2 " + flags);
  }
  ProcessResult train(const std::string& run, const std::string& flags = "") const {
    return run_trainer(arguments(run, flags));
  }
};

constexpr const char* kRestart = "--run.resume restart ";

TEST_F(Restart, AfterARunThatDivergedTheSameCommandBeginsAgain) {
  const std::string run = experiment_.fresh_run();
  expect_failed(train(run, "--debug.nan_replica 0 --debug.nan_step 7"), kExitTraining);
  expect_failed(train(run, "--train.lr 0.01"), kExitConfig,
                {"train.lr was 0.05, is 0.01", "run.resume = \"restart\""});

  const std::string first = model_of(run);
  expect_parts(succeeded(train(run + "/", std::string("--train.lr 0.01 ") + kRestart)).output,
               {"is in '" + run + ".1' now"});
  EXPECT_TRUE(model_of(run + ".1") == first);
  EXPECT_EQ(newest_checkpoint(run + ".1"), 6);
  EXPECT_EQ(newest_checkpoint(run), 9);
  EXPECT_EQ(read_file(run + "/config.toml").find("restart"), std::string::npos) << "it would do so each time";

  const std::string second = model_of(run);
  succeed(2, arguments(run, std::string("--train.lr 0.02 ") + kRestart));
  EXPECT_TRUE(model_of(run + ".2") == second);
  const std::string fresh = experiment_.fresh_run();
  succeeded(train(fresh, kRestart));
  EXPECT_FALSE(std::filesystem::exists(fresh + ".1"));
}

TEST_F(Restart, MovesNothingThatIsNoRunOrIsAtWork) {
  const std::string foreign = experiment_.fresh_run();
  std::filesystem::create_directory(foreign);
  write_file_atomically(foreign + "/thesis.txt", "years of work");
  expect_failed(run_trainer(2, arguments(foreign, kRestart)), kExitConfig,
                {"not the directory of a run", "thesis.txt"});
  EXPECT_EQ(read_file(foreign + "/thesis.txt"), "years of work");

  const std::string run = experiment_.fresh_run();
  expect_failed(
      run_command(fmt::format(
          "{} {} >/dev/null 2>&1 & job=$!; for i in $(seq 1000); do [ -s {}/metrics.jsonl ] && break; sleep "
          "0.01; "
          "done; {} {}; code=$?; kill -TERM $job; wait $job; exit $code",
          trainer_path(), arguments(run, "--debug.delay_rank 0 --debug.delay_ms 50 --train.epochs 100"), run,
          trainer_path(), arguments(run, kRestart))),
      kExitConfig, {"another trainer works in run.dir"});
  EXPECT_FALSE(std::filesystem::exists(run + ".1"));
}

TEST_F(Restart, AStartThatFailsLeavesAllInItsPlace) {
  const std::string run = experiment_.fresh_run();
  succeeded(train(run));
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
  succeeded(train(other, checkpoints));
  expect_failed(train(other, checkpoints + kRestart), kExitConfig, {"name another checkpoint.dir"});
}

// Also where nothing can be written any more.
TEST_F(Restart, OnAFullDiskWhatWasMovedAwayComesBack) {
  const std::string run = experiment_.fresh_run();
  succeeded(train(run));
  const std::string model = model_of(run);
  for (const int from : {1, 2, 3}) {
    SCOPED_TRACE(fmt::format("from write {} on", from));
    const FileFaults full({.in = run, .effect = "ENOSPC", .calls = "write", .from = from, .count = kForever});
    const ProcessResult result = run_trainer(1, arguments(run, kRestart), full);
    EXPECT_GT(full.hits(), 0);
    EXPECT_EQ(result.exit_code, kExitData) << result.errors;
    expect_parts(result.errors, {"No space left on device"});
    EXPECT_TRUE(model_of(run) == model);
    EXPECT_FALSE(std::filesystem::exists(run + ".1"));
  }
}

// What was there before is there afterwards: nothing, an empty directory, or a link to one.
TEST_F(Restart, AFirstStartThatFailsLeavesWhatItFound) {
  namespace fs = std::filesystem;
  const std::string refused = "--checkpoint.dir /proc/nobody/can/make/this";
  const std::string nothing = experiment_.fresh_run();
  const std::string empty = experiment_.fresh_run();
  const std::string link = experiment_.fresh_run();
  fs::create_directory(empty);
  fs::create_directory(link + "-behind");
  fs::create_directory_symlink(link + "-behind", link);
  for (const std::string& run : {nothing, empty, link})
    expect_failed(train(run, refused), kExitData, {"cannot create checkpoint.dir"});
  EXPECT_FALSE(fs::exists(nothing));
  EXPECT_TRUE(fs::is_directory(empty) && fs::is_empty(empty));
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_empty(link + "-behind"));
  succeeded(train(link));
  EXPECT_TRUE(fs::exists(link + "-behind/model.safetensors"));
}

// The same command would begin again, be refused, or begin from the other run.
TEST_F(Restart, AStoppedRunSaysWhatGoesOnWithIt) {
  const std::string other = experiment_.fresh_run();
  succeeded(train(other));
  for (const std::string resume : {"auto", "never", "restart", other.c_str()}) {
    const std::string run = experiment_.fresh_run();
    const std::string slow = fmt::format(
        "--debug.delay_rank 0 --debug.delay_ms 50 --run.log_every 1 --train.epochs 20 "
        "--run.resume_allow train.epochs --run.resume {}",
        resume);
    const ProcessResult stopped =
        ended_with(run_command(fmt::format("run={}; {} {} & job=$!; for i in $(seq 3000); do [ -s "
                                           "$run/metrics.jsonl ] && break; sleep 0.01; "
                                           "done; kill -USR1 $job; wait $job",
                                           run, trainer_path(), arguments(run, slow))),
                   kExitStopped);
    const bool alone = resume == "auto";
    EXPECT_EQ(count_of(stopped.output, "the same command goes on from there"), alone ? 1 : 0)
        << stopped.output;
    EXPECT_EQ(count_of(stopped.output, "the same command with --run.resume auto goes on"), alone ? 0 : 1)
        << stopped.output;
  }
}

}  // namespace
}  // namespace lockstep::test::restart_test
