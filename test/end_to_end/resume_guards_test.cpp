// What a run must not go on from or write to: the checkpoints of other runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test {
namespace {

class ResumeGuards : public testing::Test {
 protected:
  ResumeGuards() {
    write_file_atomically(directory_ / "run.toml", R"toml([run]
progress = "none"
[model]
layers = "dense(4)"
[train]
global_batch = 20
replicas = 2
)toml");
  }

  // Each start of a run goes on for an epoch more.
  ProcessResult start(int ranks, const std::string& run, const std::string& flags, int epochs,
                      const std::string& allowed = "train.epochs") const {
    const std::string arguments =
        fmt::format("--config {} --run.dir {} --train.epochs {} --run.resume_allow {} {}",
                    directory_ / "run.toml", directory_ / run, epochs, allowed, flags);
    return ranks == 1 ? run_trainer(arguments) : run_trainer(ranks, arguments);
  }

  TemporaryDirectory directory_;
};

TEST_F(ResumeGuards, ADirectoryOfCheckpointsIsThatOfOneRun) {
  const std::string synthetic =
      "--data.format synthetic --data.synthetic_rows 200 --data.synthetic_classes 4 --checkpoint.every '5 "
      "steps'";
  const std::string shared = synthetic + " --checkpoint.dir " + (directory_ / "shared");
  EXPECT_EQ(start(1, "first", shared, 1).exit_code, 0);
  const std::string owner = read_file(directory_ / "shared/owner");
  const ProcessResult second = start(2, "second", shared + " --train.lr 0.2", 1);
  EXPECT_EQ(second.exit_code, kExitConfig) << second.errors;
  expect_parts(second.errors, {"checkpoint.dir '" + (directory_ / "shared"), directory_ / "first"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "second"));
  EXPECT_EQ(read_file(directory_ / "shared/owner"), owner);
  // The run itself goes on, also when it was moved; and another goes on from it elsewhere.
  std::filesystem::rename(directory_ / "first", directory_ / "moved");
  const ProcessResult longer = start(2, "moved", shared, 2);
  EXPECT_EQ(longer.exit_code, 0) << longer.errors;
  expect_parts(longer.output, {"goes on from '" + (directory_ / "shared/step-")});
  const ProcessResult branch = start(2, "branch", synthetic + " --run.resume " + (directory_ / "moved"), 3);
  EXPECT_EQ(branch.exit_code, 0) << branch.errors;
  expect_parts(branch.output, {"goes on from '" + (directory_ / "shared/step-")});
}

}  // namespace
}  // namespace lockstep::test
