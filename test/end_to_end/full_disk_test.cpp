// What a run that could not write all of its files says at its end, and what its next start makes of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/file_faults.h"
#include "support/saved_runs.h"

namespace lockstep::test::full_disk_test {
namespace {

class FullDisk : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    experiment_ = std::make_unique<SmallExperiment>();
    whole_ = experiment_->fresh_run();
    EXPECT_EQ(run_trainer(saving_arguments(*experiment_, whole_)).exit_code, 0);
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
  EXPECT_EQ(run_trainer(1, saving_arguments(*experiment_, run), none).exit_code, 0);
  const std::vector<FileCall> calls = none.calls(0);
  const auto at = std::ranges::find_if(
      calls, [&](const FileCall& call) { return call.kind == "write" && call.path.starts_with(attempt); });
  ASSERT_NE(at, calls.end());
  const auto writes = static_cast<int>(
      std::count_if(calls.begin(), at, [](const FileCall& call) { return call.kind == "write"; }));
  std::filesystem::remove_all(run);

  const FileFaults full({.in = run, .effect = "ENOSPC", .calls = "write", .from = writes, .count = kForever});
  const ProcessResult result = start_with(full, run);
  EXPECT_EQ(result.exit_code, kExitData) << result.errors;
  EXPECT_EQ(result.errors.find("LOG ERROR"), std::string::npos) << result.errors;
  EXPECT_EQ(count_of(result.errors, "/log.txt': No space left on device"), 1) << result.errors;
  EXPECT_EQ(count_of(result.errors, "/metrics.jsonl': No space left on device"), 1) << result.errors;
  const std::size_t begin = result.errors.find("error: training is complete, but this was lost: ");
  ASSERT_NE(begin, std::string::npos) << result.errors;
  const std::string error = result.errors.substr(begin);
  for (const char* part : {"lines of log.txt and metrics.jsonl; ", "; model.safetensors (cannot write ",
                           "; summary.json (cannot write "}) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << result.errors;
  }

  const ProcessResult again = start(run);
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_TRUE(model_of(run) == model_of(whole_));
  EXPECT_EQ(metrics_of(run), metrics_of(whole_));
}

TEST_F(FullDisk, ARunThatLostFilesIsNotCompleteForItsNextStart) {
  const std::string run = experiment_->fresh_run();
  const ProcessResult lost = start_with(
      FileFaults({.in = checkpoint_of(run, 9), .effect = "ENOSPC", .calls = "write", .count = kForever}),
      run);
  EXPECT_EQ(lost.exit_code, kExitData) << lost.errors;
  const auto summary = parse_json<nlohmann::json>(read_file(run + "/summary.json"));
  EXPECT_EQ(summary.at("lost"), nlohmann::json{"the last checkpoint"});
  const ProcessResult again = start(run);
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_NE(again.output.find("went to its end, but lost the last checkpoint"), std::string::npos)
      << again.output;
  EXPECT_NE(again.output.find("step-000000006': 6 steps"), std::string::npos) << again.output;
  EXPECT_EQ(newest_checkpoint(run), 9);
  const ProcessResult third = start(run);
  EXPECT_EQ(third.exit_code, 0) << third.errors;
  EXPECT_NE(third.output.find("nothing to do"), std::string::npos) << third.output;

  // Without a checkpoint nothing can be made good.
  const std::string none = experiment_->fresh_run();
  const std::string no_checkpoints = "--checkpoint.every never --train.keep last";
  EXPECT_EQ(start_with(FileFaults({.in = none + "/metrics.jsonl", .effect = "EIO", .calls = "write"}), none,
                       no_checkpoints)
                .exit_code,
            kExitData);
  const ProcessResult refused = start(none, no_checkpoints);
  EXPECT_EQ(refused.exit_code, kExitData) << refused.errors;
  EXPECT_NE(refused.errors.find("lost metrics.jsonl: there is no checkpoint"), std::string::npos)
      << refused.errors;
}

// A file at the limit of ulimit -f is one on a full disk, and no reason to die.
TEST_F(FullDisk, AFileThatIsTooLargeIsToldAsAFullDiskIs) {
  const std::string run = experiment_->fresh_run();
  const std::string wide = "--model.layers 'dense(1600) relu dense(1600) relu dense(4)'";  // 10 MB
  const ProcessResult result = run_command("ulimit -f 16384; exec " + trainer_path() + " " +
                                           saving_arguments(*experiment_, run, wide));
  EXPECT_EQ(result.exit_code, kExitData) << result.errors;
  EXPECT_NE(result.errors.find("model.safetensors': File too large"), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("but this was lost: "), std::string::npos) << result.errors;
}

TEST_F(FullDisk, ALogThatCannotBeWrittenIsToldAndTheRunGoesOn) {
  const std::string run = experiment_->fresh_run();
  const ProcessResult result = start_with(
      FileFaults(
          {.in = run + "/log.txt", .effect = "ENOSPC", .calls = "write", .from = 4, .count = kForever}),
      run);
  EXPECT_EQ(result.exit_code, kExitData) << result.errors;
  EXPECT_EQ(result.errors.find("LOG ERROR"), std::string::npos) << result.errors;
  EXPECT_EQ(count_of(result.errors, run + "/log.txt': No space left on device"), 1) << result.errors;
  EXPECT_NE(result.errors.find("this was lost: lines of log.txt. "), std::string::npos) << result.errors;
  EXPECT_TRUE(model_of(run) == model_of(whole_));
  const ProcessResult again = start(run);
  EXPECT_EQ(again.exit_code, kExitData) << again.errors;  // they stay lost
  EXPECT_NE(again.errors.find("this was lost: lines of log.txt. "), std::string::npos) << again.errors;
}

}  // namespace
}  // namespace lockstep::test::full_disk_test
