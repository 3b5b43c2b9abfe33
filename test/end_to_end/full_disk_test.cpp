// What a run that could not write all of its files says at its end, and what its next start makes of it.
#include "support/file_faults.h"
#include "support/saved_runs.h"
#include "support/trainer_runs.h"

namespace lockstep::test::full_disk_test {
namespace {

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
}  // namespace lockstep::test::full_disk_test
