// Runs that are ended early, in every way, and go on.
#include <sys/mount.h>
#include <unistd.h>

#include <regex>

#include "support/trainer_runs.h"

namespace lockstep::test::resume_test {
namespace {

class Resume : public testing::Test {
 protected:
  // `flags` come after those of all runs here.
  std::string arguments(const std::string& run, const std::string& flags = "") const {
    return fmt::format(
        "--config {} --run.dir {} --distribute.reduction ordered --train.momentum 0.9 --run.log_every 3 "
        "--checkpoint.every '5 steps' --checkpoint.wait true {}",
        experiment_.config(), run, flags);
  }

  ProcessResult ok(int ranks, const std::string& run, const std::string& flags = "") {
    return succeed(ranks, arguments(run, flags));
  }

  // A run that never ended early, trained once for each set of flags.
  std::string whole_run(const std::string& flags = "") {
    static std::map<std::string, std::string> runs;
    std::string& run = runs[flags];
    if (run.empty()) {
      run = experiment_.fresh_run();
      ok(1, run, flags);
    }
    return run;
  }

  // The trainer in the background, on `ranks` ranks, with a shell command that may use $job, the launcher.
  // Exits as the launcher does.
  ProcessResult run_and_do(int ranks, const std::string& arguments, const std::string& command) const {
    return run_command(
        fmt::format("{} {} & job=$!; {}\nwait $job", mpiexec_words(), rank_words(ranks, arguments), command));
  }

  static std::string newest(const std::string& run) { return checkpoint_of(run, newest_checkpoint(run)); }
  // A new run of two ranks that fails in a step.
  std::string failed_run(int step, const std::string& flags = "") const {
    std::string run = experiment_.fresh_run();
    const std::string failing = fmt::format("--debug.fail_rank 1 --debug.fail_step {} ", step);
    EXPECT_NE(run_trainer(2, arguments(run, failing + flags)).exit_code, 0);
    return run;
  }

  static const SmallExperiment& the_experiment() {
    static const SmallExperiment experiment;
    return experiment;
  }

  const SmallExperiment& experiment_ = the_experiment();
};

// As long as it takes to be there, 30 s at most. `path` may be a pattern.
std::string wait_for(const std::string& path) {
  return fmt::format("for i in $(seq 3000); do set -- {}; [ -e $1 ] && break; sleep 0.01; done", path);
}

constexpr const char* kSlow = "--debug.delay_rank 0 --debug.delay_ms 20 --train.epochs 40";

TEST_F(Resume, OneThatFailedGoesOnOnOtherRanksWithTheSameBytes) {
  const std::string whole = whole_run();
  for (const auto& [before, after] :
       {std::pair("allreduce", "zero1"), {"zero1", "central_storage"}, {"central_storage", "allreduce"}}) {
    // It waits for the checkpoint of step 10 before it makes that of step 15, which may be lost.
    const std::string run = failed_run(16, std::string("--distribute.strategy ") + before);
    const ProcessResult rest = ok(3, run, std::string("--distribute.strategy ") + after);
    EXPECT_TRUE(std::regex_search(rest.output, std::regex("goes on from .*1[05] steps"))) << rest.output;
    expect_same_run(run, whole);
  }
}

TEST_F(Resume, OneThatWasKilledGoesOnWithTheSameBytes) {
  const std::string whole = whole_run("--train.epochs 40");
  const std::string run = experiment_.fresh_run();
  const ProcessResult killed =
      run_and_do(2, arguments(run, kSlow),
                 wait_for(run + "/checkpoints/step-000000010") + "; sleep 0.1; pkill -9 -n -P $job");
  EXPECT_NE(killed.exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(run + "/summary.json"));
  ok(3, run, "--train.epochs 40");
  expect_same_run(run, whole);
}

// Native sums are made in the order of the algorithm, which stands in the checkpoint.
TEST_F(Resume, TellsOfAnotherAlgorithm) {
  for (const bool same : {false, true}) {
    const std::string native =
        "--distribute.reduction native --distribute.strategy allreduce --distribute.algorithm ";
    const std::string run = failed_run(16, native + "ring");
    expect_parts(read_file(newest(run) + "/manifest.json"), {R"("algorithm": "ring)"});
    const ProcessResult rest = ok(2, run, native + (same ? "ring" : "rabenseifner"));
    EXPECT_EQ(rest.output.find("made in another order now") == std::string::npos, same) << rest.output;
  }
}

// Of one rank only, and by a file.
TEST_F(Resume, StopsWhenItIsAskedTo) {
  const std::string whole = whole_run("--train.epochs 40");
  const std::string first = "/checkpoints/step-000000005";
  for (const std::string wish : {"pkill -USR1 -n -P $job", "pkill -TERM -o -P $job", "touch RUN/stop"}) {
    const std::string run = experiment_.fresh_run();
    const std::string command = std::regex_replace(wish, std::regex("RUN"), run);
    const ProcessResult stopped = ended_with(
        run_and_do(2, arguments(run, kSlow), wait_for(run + first) + "; " + command), kExitStopped);
    expect_parts(stopped.output, {"stopped after"});
    ok(1, run, "--train.epochs 40");
    EXPECT_TRUE(model_of(run) == model_of(whole)) << wish;
  }
}

TEST_F(Resume, StopsBeforeItsTimeIsOver) {
  const std::string run = experiment_.fresh_run();
  const ProcessResult stopped = ended_with(
      run_trainer(2, arguments(run, std::string(kSlow) + " --run.time_limit '5 seconds'")), kExitStopped);
  expect_parts(stopped.output, {"the time limit"});
}

// Also where checkpoints are not made otherwise; and meanwhile nobody else works in its directory.
TEST_F(Resume, AStopIsAlwaysSavedAndTheDirectoryIsOneTrainersAtATime) {
  const std::string run = experiment_.fresh_run();
  const std::string never = " --checkpoint.every never";
  const ProcessResult stopped =
      ended_with(run_and_do(2, arguments(run, kSlow + never),
                            wait_for(run + "/metrics.jsonl") + "; " + mpiexec_words() + " " +
                                rank_words(1, arguments(run, kSlow + never)) + "; echo second: $?; touch " +
                                run + "/stop"),
                 kExitStopped);
  expect_parts(stopped.output, {"second: 2"});
  expect_parts(stopped.errors, {"another trainer works in"});
  expect_parts(ok(1, run, "--train.epochs 40" + never).output, {"goes on from"});
}

TEST_F(Resume, WorkersThatStepAloneStopToo) {
  const std::string run = experiment_.fresh_run();
  const std::string flags =
      "--distribute.reduction native --distribute.strategy parameter_server --distribute.servers 1 "
      "--distribute.mode async --train.replicas 2 --debug.delay_rank 0 --debug.delay_ms 20 --train.epochs 40";
  expect_failed(
      run_and_do(3, arguments(run, flags),
                 // Two workers at once may step beyond the fifth before it is saved.
                 wait_for(run + "/checkpoints/step-*[0-9]") + "; sleep 0.2; pkill -USR1 -n -P $job"),
      kExitStopped);
  expect_parts(succeed(3, arguments(run, flags + " --debug.delay_ms 0")).output, {"goes on from"});
}

TEST_F(Resume, AnotherExperimentIsRefusedWithAListOfWhatDiffers) {
  const std::string layers = "--model.layers 'dense(16) batch_norm relu dense(4)' ";
  const std::string run = failed_run(13, layers);
  const std::string model = read_file(newest(run) + "/model.safetensors");
  const ProcessResult other = ended_with(
      run_trainer(
          2, arguments(run, layers + "--train.lr 0.01 --run.seed 7 --eval.precise_bn 3 --train.threads 2")),
      kExitConfig);
  expect_parts(other.errors, {"train.lr was", "run.seed was 1, is 7", "eval.precise_bn was 0, is 3"});
  expect_no_parts(other.errors, {"train.threads"});
  EXPECT_TRUE(read_file(newest(run) + "/model.safetensors") == model);
  ok(2, run, layers + "--train.lr 0.01 --run.resume_allow train.lr");
}

TEST_F(Resume, ACompleteRunIsLeftAsItIs) {
  const std::string run = experiment_.fresh_run();
  ok(1, run);
  const std::string model = model_of(run);
  expect_parts(ok(2, run).output, {"nothing to do"});
  EXPECT_TRUE(model_of(run) == model);
  expect_failed(run_trainer(2, arguments(run, "--run.resume never")), kExitConfig, {"never overwritten"});
  // And goes on for longer, if that is meant.
  ok(2, run, "--train.epochs 4 --run.resume_allow train.epochs");
  EXPECT_FALSE(model_of(run) == model);
}

TEST_F(Resume, FromTheCheckpointOfAnotherRun) {
  const std::string whole = whole_run();
  const std::string run = experiment_.fresh_run();
  ok(2, run, "--run.resume " + whole + "/checkpoints/step-000000010 --checkpoint.keep 1");
  EXPECT_TRUE(model_of(run) == model_of(whole));
  expect_failed(run_trainer(2, arguments(experiment_.fresh_run(), "--run.resume /nowhere")), kExitConfig,
                {"/nowhere"});
}

// Replicas that followed the number of ranks are kept: it goes on as it began, on any other number.
TEST_F(Resume, WithTheReplicasThatItsRanksWere) {
  std::string text = read_file(experiment_.config());
  const std::string given = "replicas = 8\n";
  const std::size_t found = text.find(given);
  ASSERT_NE(found, std::string::npos);
  const std::string free = experiment_.directory() / "free.toml";
  write_file_atomically(free, text.erase(found, given.size()));
  const auto train = [&](int ranks, const std::string& run, const std::string& flags) {
    return run_trainer(ranks,
                       fmt::format("--config {} --run.dir {} --distribute.reduction ordered --train.epochs 1 "
                                   "--checkpoint.every '3 steps' --checkpoint.wait true {}",
                                   free, run, flags));
  };
  const std::string whole = experiment_.fresh_run();
  succeeded(train(1, whole, "--train.replicas 3"));
  const std::string run = experiment_.fresh_run();
  // At step 6 training waits for the checkpoint of step 3.
  EXPECT_NE(train(3, run, "--debug.fail_rank 1 --debug.fail_step 8").exit_code, 0);
  expect_parts(read_file(run + "/config.toml"), {"\nreplicas = 3\n"});
  succeeded(train(2, run, ""));
  EXPECT_TRUE(model_of(run) == model_of(whole));
}

TEST_F(Resume, ReadsItsDataFromAnotherPlace) {
  const std::string run = failed_run(13);
  const std::string moved = experiment_.directory() / "moved";
  std::filesystem::create_directory(moved);
  std::string flags;
  for (const auto& [key, file] :
       {std::pair{"train", experiment_.train().images}, {"train_labels", experiment_.train().labels}}) {
    std::filesystem::copy(file, moved);
    flags += fmt::format("--data.{} {}/{} ", key, moved, std::filesystem::path(file).filename().string());
  }
  ok(2, run, flags);
  EXPECT_TRUE(model_of(run) == model_of(whole_run()));
}

TEST_F(Resume, DamageIsToldAndTheOneBeforeIsUsed) {
  const std::string whole = whole_run();
  const auto flip = [](const std::string& file) {
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(100);
    bytes.put('\x7f');
  };
  const auto cut = [](const std::string& file) {
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  };
  const std::string run = failed_run(16);
  // That of step 15 may have been cut off with the run.
  const std::vector<Index> steps = finished_checkpoints(run);
  ASSERT_GE(steps.size(), 2U);
  flip(newest(run) + "/model.safetensors");
  std::filesystem::create_directories(run + "/checkpoints/step-000000020.partial");
  const ProcessResult rest = ok(2, run);
  expect_parts(rest.errors, {fmt::format("checkpoint of step {} is not used", steps.back())});
  expect_parts(rest.output, {fmt::format("{} steps", steps[steps.size() - 2])});
  EXPECT_TRUE(model_of(run) == model_of(whole));

  const std::string lost = failed_run(13);
  // That of step 10 may have been cut off with the run.
  for (const Index step : finished_checkpoints(lost)) cut(checkpoint_of(lost, step) + "/manifest.json");
  expect_failed(run_trainer(2, arguments(lost)), kExitData, {"no whole checkpoint"});
}

TEST_F(Resume, TheBestIsKept) {
  const std::string run = experiment_.fresh_run();
  const std::string validation = fmt::format("--data.validation {} --data.validation_labels {} ",
                                             experiment_.test().images, experiment_.test().labels);
  const std::string flags =
      validation +
      "--train.epochs 6 --train.lr 0.5 --train.early_stopping_metric accuracy --checkpoint.keep 1";
  ok(2, run, flags);
  const std::string best = read_file(run + "/checkpoints/best");
  EXPECT_TRUE(best.starts_with("step-")) << best;
  const std::string directory = run + "/checkpoints/" + best.substr(0, best.size() - 1);
  succeed(1, "eval --model " + directory);
  expect_failed(run_trainer(2, arguments(experiment_.fresh_run(),
                                         validation + "--train.early_stopping_metric happiness")),
                kExitConfig, {"'loss', 'accuracy'"});
}

// Whenever the process dies, what was finished before is whole. Open MPI 4.1's launcher can hang after a
// death within MPI_Init: then it is ended too.
TEST_F(Resume, KilledAtAnyMomentOfWriting) {
  const std::string whole = experiment_.fresh_run();
  ok(1, whole, "--train.epochs 400 --checkpoint.every never");
  const std::string run = experiment_.fresh_run();
  const int kills = std::getenv("LOCKSTEP_KILLS") != nullptr ? std::atoi(std::getenv("LOCKSTEP_KILLS")) : 4;
  for (int kill = 0; kill < kills; ++kill) {
    run_and_do(
        2, arguments(run, "--train.epochs 400 --checkpoint.every '1 step'"),
        fmt::format("sleep {}.{:03}; while kill -0 $job && ! pkill -9 -{} -P $job; do sleep 0.01; done; "
                    "(sleep 15; kill -9 $job) >/dev/null 2>&1 &",
                    kill % 2, 137 * kill % 1000, kill % 3 == 0 ? "o" : "n"));
  }
  expect_no_parts(ok(2, run, "--train.epochs 400 --checkpoint.every never").errors, {"not used"});
  EXPECT_TRUE(model_of(run) == model_of(whole));
}

// Training goes on, warns each time, keeps what it has, and does not end as if all were well.
TEST_F(Resume, AFullDisk) {
  const TemporaryDirectory disk;
  if (::mount("none", disk.path().c_str(), "tmpfs", 0, "size=16k") != 0) GTEST_SKIP() << "no mounting here";
  const std::string run = experiment_.fresh_run();
  const ProcessResult result = run_trainer(2, arguments(run, "--checkpoint.dir " + disk.path().string()));
  ::umount(disk.path().c_str());
  EXPECT_EQ(result.exit_code, kExitData) << result.errors;
  EXPECT_GE(count_of(result.errors, "No space left"), 2) << result.errors;
  expect_parts(result.errors, {"training is complete, but"});
  EXPECT_TRUE(std::filesystem::exists(run + "/model.safetensors"));
}

}  // namespace
}  // namespace lockstep::test::resume_test
