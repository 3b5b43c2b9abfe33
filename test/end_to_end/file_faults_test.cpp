// Files that cannot be written, of a run and of its checkpoints: training goes on where it can, what is wrong
// is said with path and reason, and the exit code does not say that all is well. A rank that dies at a call:
// what was finished before is whole, and the run goes on from there (crash_test looks at what each call would
// leave). LOCKSTEP_EVERY_CALL in the environment: at every file call, else at some.
#include <fcntl.h>

#include "lockstep/train/storage/checkpoint.h"
#include "support/file_faults.h"
#include "support/running_job.h"
#include "support/trainer_runs.h"

namespace lockstep::test::file_faults_test {
namespace {

// The line of `text` that begins with `beginning`.
std::string line_of(const std::string& text, const std::string& beginning) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(beginning)) return line;
  }
  return "";
}

const SmallExperiment& the_experiment() {
  static const SmallExperiment experiment;
  return experiment;
}

// A run that nothing befell.
const std::string& whole_run() {
  static const std::string run = [] {
    const std::string whole = the_experiment().fresh_run();
    succeed(1, saving_arguments(the_experiment(), whole));
    return whole;
  }();
  return run;
}

class FileFaultRuns : public testing::Test {
 protected:
  ProcessResult run_with(const FileFaults& faults, const std::string& run, const std::string& flags = "") {
    const ProcessResult result = run_trainer(2, saving_arguments(experiment_, run, flags), faults);
    EXPECT_GT(faults.hits(), 0) << "nothing went wrong";
    return result;
  }

  const SmallExperiment& experiment_ = the_experiment();
  const std::string& whole_ = whole_run();
};

struct WriteFault {
  const char* calls;
  const char* effect;
  const char* reason;
  int rank;
};

TEST_F(FileFaultRuns, ACheckpointThatFailsIsToldAndThoseAfterItAreWritten) {
  for (const WriteFault& fault : {WriteFault{"write", "half,ENOSPC", "No space left on device", 0},
                                  {"write", "EDQUOT", "Disk quota exceeded", 1},
                                  {"sync", "EIO", "Input/output error", 1},
                                  {"rename", "EIO", "Input/output error", 0},
                                  {"mkdir", "EDQUOT", "Disk quota exceeded", 0},
                                  {"create", "EROFS", "Read-only file system", kEveryRank}}) {
    SCOPED_TRACE(fmt::format("{} {}", fault.calls, fault.effect));
    const std::string run = experiment_.fresh_run();
    const std::string attempt = checkpoint_of(run, 6);
    const FileFaults faults(
        {.in = attempt, .effect = fault.effect, .calls = fault.calls, .count = kForever, .rank = fault.rank});
    const ProcessResult result = succeeded(run_with(faults, run));
    EXPECT_EQ(count_of(result.errors, "warning: no checkpoint of step"), 1) << result.errors;
    const std::string warning =
        line_of(result.errors,
                fmt::format("warning: no checkpoint of step 6: rank {}: cannot ", std::max(fault.rank, 0)));
    expect_parts(warning, {attempt});
    EXPECT_NE(warning.find(fault.reason), std::string::npos) << result.errors;
    EXPECT_EQ(newest_checkpoint(run), 9);
    EXPECT_TRUE(unfinished_names(run).empty()) << testing::PrintToString(unfinished_names(run));
    EXPECT_TRUE(model_of(run) == model_of(whole_));
  }
}

TEST_F(FileFaultRuns, WhereNoMoreCheckpointsCanBeWrittenTheLastGoodOneStays) {
  const std::string counted = experiment_.fresh_run();
  const FileFaults none({.in = checkpoint_of(counted, 3)});
  succeeded(run_trainer(2, saving_arguments(experiment_, counted), none));
  const std::vector<FileCall> first = none.calls(1);
  const auto writes = static_cast<int>(std::ranges::count(first, "write", &FileCall::kind));
  const std::string run = experiment_.fresh_run();
  const FileFaults full({.in = run + "/checkpoints/",
                         .effect = "EDQUOT",
                         .calls = "write",
                         .from = writes + 1,
                         .count = kForever,
                         .rank = 1});
  const ProcessResult result = ended_with(run_with(full, run), kExitData);
  for (const int step : {5, 6, 9}) {
    const std::string warning =
        line_of(result.errors, fmt::format("warning: no checkpoint of step {}: rank 1: cannot ", step));
    expect_parts(warning, {"Disk quota exceeded"});
  }
  const std::string error =
      line_of(result.errors, "error: rank 0: training is complete, but this was lost: the last checkpoint ");
  expect_parts(error, {"Disk quota exceeded"});
  EXPECT_EQ(finished_checkpoints(run), std::vector<Index>{3});
  EXPECT_TRUE(model_of(run) == model_of(whole_));

  // What starts from it ends as a run that went through.
  const std::string rest = experiment_.fresh_run();
  succeed(1, saving_arguments(experiment_, rest, "--run.resume " + checkpoint_of(run, 3)));
  EXPECT_TRUE(model_of(rest) == model_of(whole_));
}

// Whoever starts it again must know that there is no newer checkpoint to go on from.
TEST_F(FileFaultRuns, AStopThatCannotBeSavedIsAnError) {
  const std::string run = experiment_.fresh_run();
  const FileFaults faults(
      {.in = run + "/checkpoints/step-", .effect = "ENOSPC", .calls = "write", .count = kForever});
  const ProcessResult result = ended_with(
      run_with(faults, run, "--train.epochs 100000 --checkpoint.every never --run.time_limit '3.2 seconds'"),
      kExitData);
  const std::string error = line_of(result.errors, "error: stopped after ");
  expect_parts(error, {"No space left on device"});
}

// What was renamed may be lost with the machine if its directory cannot be synced.
TEST_F(FileFaultRuns, ADirectoryThatCannotBeSyncedIsTold) {
  const std::string run = experiment_.fresh_run();
  const FileFaults faults({.in = run + "/checkpoints", .effect = "EIO", .calls = "open", .count = kForever});
  const ProcessResult result = ended_with(run_with(faults, run), kExitData);
  const std::string warning =
      line_of(result.errors, "warning: no checkpoint of step 3: rank 0: cannot sync ");
  expect_parts(warning, {"step-000000003.partial': Input/output error"});
}

// Rank 0 goes on, with the manifest and the checkpoint's name, once it sees the last file of each rank.
TEST_F(FileFaultRuns, ARankThatIsSlowToWriteItsPartIsNoFailure) {
  const std::string run = experiment_.fresh_run();
  const FileFaults slow({.in = checkpoint_of(run, 3), .effect = "wait", .count = kForever, .rank = 1});
  const ProcessResult result = succeeded(run_with(slow, run));
  EXPECT_EQ(result.errors, "");
  EXPECT_EQ(newest_checkpoint(run), 9);
}

// A call that fails once never costs more than the checkpoint that it belongs to.
TEST_F(FileFaultRuns, AnyCallThatFailsOnceLeavesAWholeCheckpoint) {
  const bool every = std::getenv("LOCKSTEP_EVERY_CALL") != nullptr;
  for (const int rank : {0, 1}) {
    for (int call = 1, hits = 1; hits > 0; call += every ? 1 : rank == 0 ? 127 : 41) {
      const std::string run = experiment_.fresh_run();
      const FileFaults faults({.in = run + "/checkpoints", .effect = "EIO", .from = call, .rank = rank});
      const ProcessResult result = run_trainer(2, saving_arguments(experiment_, run), faults);
      hits = faults.hits();
      SCOPED_TRACE(fmt::format("rank {}, call {}:\n{}", rank, call, result.errors));
      EXPECT_TRUE(result.exit_code == 0 || result.exit_code == kExitData) << result.exit_code;
      EXPECT_EQ(result.exit_code != 0, count_of(result.errors, "error: ") == 1);
      EXPECT_EQ(count_of(result.errors, "Input/output error") > 0, count_of(result.errors, "warning: ") > 0);
      for (const FileCall& failed : faults.calls(rank)) {
        if (failed.effect.empty() ||
            std::string("write create sync rename mkdir").find(failed.kind) == std::string::npos)
          continue;
        EXPECT_EQ(count_of(result.errors, "warning: "), 1) << failed.kind << ' ' << failed.path;
      }
      EXPECT_TRUE(model_of(run) == model_of(whole_));
      EXPECT_NO_THROW(CheckpointReader(checkpoint_of(run, newest_checkpoint(run))).verify(1, 0));
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(FileFaultRuns, ACheckpointDirectoryThatIsTakenAway) {
  const std::string slow = "--train.epochs 4 --debug.delay_rank 0 --debug.delay_ms 20";
  for (const bool replaced : {true, false}) {
    const std::string run = experiment_.fresh_run();
    RunningJob job(2, saving_arguments(experiment_, run, slow));
    ASSERT_TRUE(job.says("checkpoint of step 3:", 20)) << job.errors();
    const std::string away = run + "-checkpoints";
    if (replaced) std::ofstream(away) << "no directory";
    const unsigned flags =
        replaced ? RENAME_EXCHANGE : 0;  // at once, so that nobody makes it again meanwhile
    ASSERT_EQ(::renameat2(AT_FDCWD, (run + "/checkpoints").c_str(), AT_FDCWD, away.c_str(), flags), 0);
    EXPECT_EQ(job.wait(30), replaced ? kExitData : 0) << job.errors();
    if (replaced) {
      const std::string error = line_of(
          job.errors(), "error: rank 0: training is complete, but this was lost: the last checkpoint ");
      EXPECT_NE(error.find(run + "/checkpoints"), std::string::npos) << job.errors();
      expect_parts(error, {"ot a directory"});
      EXPECT_GE(count_of(job.errors(), "warning: no checkpoint of step"), 8) << job.errors();
    } else {
      EXPECT_EQ(newest_checkpoint(run), 36);
    }
    EXPECT_TRUE(std::filesystem::exists(run + "/model.safetensors"));
  }
}

TEST_F(FileFaultRuns, AFileOfTheRunDirectoryThatCannotBeWrittenIsOneErrorWithItsReason) {
  struct Case {
    const char* file;
    WriteFault fault;
  };
  for (const auto& [file, fault] :
       {Case{"", {"mkdir", "EROFS", "Read-only file system", 0}},
        {"/log.txt", {"create", "EIO", "Input/output error", 0}},
        {"/config.toml", {"write", "half,ENOSPC", "No space left on device", 0}},
        {"/metrics.jsonl", {"create", "EDQUOT", "Disk quota exceeded", 0}},
        {"/summary.json", {"rename", "EIO", "Input/output error", 0}},
        {"/model.safetensors", {"write", "ENOSPC", "No space left on device", 0}}}) {
    const std::string run = experiment_.fresh_run();
    SCOPED_TRACE(run + file);
    const ProcessResult result = ended_with(
        run_with(
            FileFaults({.in = run + file, .effect = fault.effect, .calls = fault.calls, .count = kForever}),
            run),
        kExitData);
    EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
    const std::string error = line_of(result.errors, "error: rank 0: ");
    EXPECT_NE(error.find(run + file), std::string::npos) << result.errors;
    EXPECT_NE(error.find(fault.reason), std::string::npos) << result.errors;
  }
}

// Half of a line, then nothing, then all is well again; and a run that goes on finds the end of a line.
TEST_F(FileFaultRuns, MetricsAreWholeLinesWhateverIsLost) {
  const std::string intact = experiment_.fresh_run();
  succeed(2, saving_arguments(experiment_, intact));
  const std::string run = experiment_.fresh_run();
  const FileFaults full_for_a_while(
      {.in = run + "/metrics.jsonl", .effect = "half,ENOSPC", .calls = "write", .from = 2, .count = 2});
  const ProcessResult result = ended_with(run_with(full_for_a_while, run), kExitData);
  EXPECT_EQ(count_of(result.errors, "metrics.jsonl': No space left on device"), 1) << result.errors;
  const std::string metrics = read_file(run + "/metrics.jsonl");
  EXPECT_EQ(count_of(metrics, "\n"), count_of(read_file(intact + "/metrics.jsonl"), "\n") - 1) << metrics;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  const CheckpointReader last(checkpoint_of(run, 9));
  const Index bytes = last.header().metrics_bytes;
  ASSERT_LE(bytes, std::ssize(metrics));
  EXPECT_EQ(metrics[static_cast<std::size_t>(bytes) - 1], '\n') << bytes << " of\n" << metrics;
}

TEST_F(FileFaultRuns, LinesOfMetricsThatAreLostAreToldOnceAndAtTheEnd) {
  const std::string lost = experiment_.fresh_run();
  const ProcessResult result = ended_with(run_with(FileFaults({.in = lost + "/metrics.jsonl",
                                                               .effect = "EIO",
                                                               .calls = "write",
                                                               .from = 2,
                                                               .count = kForever}),
                                                   lost),
                                          kExitData);
  EXPECT_EQ(count_of(result.errors, "metrics.jsonl': Input/output error"), 1) << result.errors;
  expect_parts(result.errors, {"this was lost: lines of metrics.jsonl. "});
  EXPECT_TRUE(model_of(lost) == model_of(whole_));
}

constexpr int kRanks = 2;

class DyingWriter : public testing::TestWithParam<int> {
 protected:
  DyingWriter() { succeed(1, saving_arguments(experiment_, whole_)); }

  // Whether the rank died: the run has no such call where it did not.
  bool dies_and_goes_on(int rank, int call) {
    const std::string run = experiment_.fresh_run();
    const FileFaults faults({.in = run + "/checkpoints", .effect = "die", .from = call, .rank = rank});
    const ProcessResult first = run_trainer(kRanks, saving_arguments(experiment_, run), faults);
    EXPECT_FALSE(faults.calls(rank).empty()) << "the library saw nothing";
    if (faults.hits() == 0) {
      EXPECT_EQ(first.exit_code, 0) << first.errors;
      return false;
    }
    const FileCall last = faults.calls(rank).back();
    SCOPED_TRACE(last.kind + " " + last.path);
    EXPECT_NE(first.exit_code, 0) << first.output;
    const Index newest = newest_checkpoint(run);
    const ProcessResult rest = succeed(1 + call % 3, saving_arguments(experiment_, run));
    expect_no_parts(rest.errors, {"not used"});
    const std::string beginning =
        newest < 0 ? "it starts anew" : "goes on from '" + checkpoint_of(run, newest) + "'";
    expect_parts(rest.output, {beginning});
    expect_same_run(run, whole_);
    EXPECT_TRUE(unfinished_names(run).empty()) << testing::PrintToString(unfinished_names(run));
    return true;
  }

  SmallExperiment experiment_;
  std::string whole_ = experiment_.fresh_run();
};

TEST_P(DyingWriter, LosesNothingThatWasFinished) {
  const bool every = std::getenv("LOCKSTEP_EVERY_CALL") != nullptr;
  const int rank = GetParam();
  if (!every) {
    EXPECT_TRUE(dies_and_goes_on(rank, rank == 0 ? 120 : 40)) << "nobody died";
    return;
  }
  int deaths = 0;
  for (int call = 1; dies_and_goes_on(rank, call); ++call) {
    ++deaths;
    ASSERT_FALSE(HasFailure()) << "after the death at call " << call;
  }
  std::printf("%d deaths of rank %d\n", deaths, rank);
  EXPECT_GE(deaths, 30);
}

INSTANTIATE_TEST_SUITE_P(Rank, DyingWriter, testing::Values(0, 1), testing::PrintToStringParamName());

class FullDisk : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    experiment_ = std::make_unique<SmallExperiment>();
    whole_ = experiment_->fresh_run();
    succeed(saving_arguments(*experiment_, whole_));
  }
  static void TearDownTestSuite() { experiment_.reset(); }

  static ProcessResult start(const std::string& run, const std::string& flags = "") {
    return run_trainer(saving_arguments(*experiment_, run, flags));
  }
  static ProcessResult start_with(const FileFaults& faults, const std::string& run,
                                  const std::string& flags = "") {
    const ProcessResult result = run_trainer(1, saving_arguments(*experiment_, run, flags), faults);
    EXPECT_GT(faults.hits(), 0) << "nothing went wrong";
    return result;
  }

  static inline std::unique_ptr<SmallExperiment> experiment_;
  static inline std::string whole_;  // a run that nothing befell
};

// Whatever cannot be written any more, the end names it, and the run is not taken for complete before it is
// whole: lines of the log that were lost stay lost.
TEST_F(FullDisk, AFullDiskIsToldAtTheEndAndTheNextStartMakesGoodWhatItCan) {
  const std::string run = experiment_->fresh_run();
  const std::string attempt = checkpoint_of(run, 6);
  const FileFaults none({.in = run});
  succeeded(run_trainer(1, saving_arguments(*experiment_, run), none));
  const std::vector<FileCall> calls = none.calls(0);
  const auto at = std::ranges::find_if(
      calls, [&](const FileCall& call) { return call.kind == "write" && call.path.starts_with(attempt); });
  ASSERT_NE(at, calls.end());
  const auto writes = static_cast<int>(
      std::count_if(calls.begin(), at, [](const FileCall& call) { return call.kind == "write"; }));
  std::filesystem::remove_all(run);

  const FileFaults full({.in = run, .effect = "ENOSPC", .calls = "write", .from = writes, .count = kForever});
  const ProcessResult result = ended_with(start_with(full, run), kExitData);
  expect_no_parts(result.errors, {"LOG ERROR"});
  EXPECT_EQ(count_of(result.errors, "/log.txt': No space left on device"), 1) << result.errors;
  EXPECT_EQ(count_of(result.errors, "/metrics.jsonl': No space left on device"), 1) << result.errors;
  const std::size_t begin = result.errors.find("error: training is complete, but this was lost: ");
  ASSERT_NE(begin, std::string::npos) << result.errors;
  const std::string error = result.errors.substr(begin);
  expect_parts(error, {"lines of log.txt and metrics.jsonl; ", "; model.safetensors (cannot write ",
                       "; summary.json (cannot write "});

  succeeded(start(run));
  expect_same_run(run, whole_);
}

TEST_F(FullDisk, ARunThatLostFilesIsNotCompleteForItsNextStart) {
  const std::string run = experiment_->fresh_run();
  const ProcessResult lost = ended_with(
      start_with(
          FileFaults({.in = checkpoint_of(run, 9), .effect = "ENOSPC", .calls = "write", .count = kForever}),
          run),
      kExitData);
  const auto summary = parse_json<nlohmann::json>(read_file(run + "/summary.json"));
  EXPECT_EQ(summary.at("lost"), nlohmann::json{"the last checkpoint"});
  expect_parts(succeeded(start(run)).output,
               {"went to its end, but lost the last checkpoint", "step-000000006': 6 steps"});
  EXPECT_EQ(newest_checkpoint(run), 9);
  expect_parts(succeeded(start(run)).output, {"nothing to do"});

  // Without a checkpoint nothing can be made good.
  const std::string none = experiment_->fresh_run();
  const std::string no_checkpoints = "--checkpoint.every never --train.keep last";
  expect_failed(start_with(FileFaults({.in = none + "/metrics.jsonl", .effect = "EIO", .calls = "write"}),
                           none, no_checkpoints),
                kExitData);
  expect_failed(start(none, no_checkpoints), kExitData, {"lost metrics.jsonl: there is no checkpoint"});
}

// A file at the limit of ulimit -f is one on a full disk, and no reason to die.
TEST_F(FullDisk, AFileThatIsTooLargeIsToldAsAFullDiskIs) {
  const std::string run = experiment_->fresh_run();
  const std::string wide = "--model.layers 'dense(1600) relu dense(1600) relu dense(4)'";  // 10 MB
  expect_failed(run_command("ulimit -f 16384; exec " + trainer_path() + " " +
                            saving_arguments(*experiment_, run, wide)),
                kExitData, {"model.safetensors': File too large", "but this was lost: "});
}

TEST_F(FullDisk, ALogThatCannotBeWrittenIsToldAndTheRunGoesOn) {
  const std::string run = experiment_->fresh_run();
  const ProcessResult result = ended_with(
      start_with(
          FileFaults(
              {.in = run + "/log.txt", .effect = "ENOSPC", .calls = "write", .from = 4, .count = kForever}),
          run),
      kExitData);
  expect_no_parts(result.errors, {"LOG ERROR"});
  EXPECT_EQ(count_of(result.errors, run + "/log.txt': No space left on device"), 1) << result.errors;
  expect_parts(result.errors, {"this was lost: lines of log.txt. "});
  EXPECT_TRUE(model_of(run) == model_of(whole_));
  const ProcessResult again = ended_with(start(run), kExitData);  // they stay lost
  expect_parts(again.errors, {"this was lost: lines of log.txt. "});
}

}  // namespace
}  // namespace lockstep::test::file_faults_test
