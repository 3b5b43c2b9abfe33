// Standard output that cannot be written to: a result that did not arrive is an error, and a training goes on
// without whoever read its log.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/saved_runs.h"
#include "support/trainer_process.h"

namespace lockstep::test {
namespace {

TEST(StandardOutput, AResultThatDoesNotArriveIsAnError) {
  const SmallExperiment experiment;
  const std::string run = experiment.fresh_run();
  ASSERT_EQ(run_trainer(saving_arguments(experiment, run)).exit_code, 0);
  const std::string table = experiment.directory() / "table.csv";
  write_file_atomically(table, "x,y\n1,2\n3,4\n");
  for (const std::string& command :
       {std::string("--help"), std::string("--help-all"), std::string("--version"), std::string("reference"),
        "plan --config " + experiment.config(), "eval --model " + run, "inspect " + table + " --label y"}) {
    SCOPED_TRACE(command);
    ASSERT_EQ(run_trainer(command).exit_code, 0) << run_trainer(command).errors;
    const ProcessResult result = run_command(trainer_path() + " " + command + " >/dev/full");
    EXPECT_EQ(result.exit_code, kExitData);
    expect_parts(result.errors, {"cannot write all to standard output: No space left on device"});
  }
}

TEST(StandardOutput, ARunGoesOnWhenTheReaderOfItsLogHasGone) {
  const SmallExperiment experiment;
  for (const int ranks : {1, 2}) {
    const std::string run = experiment.fresh_run();
    const std::string arguments =
        saving_arguments(experiment, run, "--debug.delay_rank 0 --debug.delay_ms 20 --run.log_every 1");
    const std::string command =
        ranks == 1 ? trainer_path() + " " + arguments : mpiexec_words() + " " + rank_words(ranks, arguments);
    const ProcessResult result = run_command(command + " | head -n 2");
    EXPECT_EQ(count_of(result.output, "\n"), 2) << result.output;
    EXPECT_TRUE(std::filesystem::exists(run + "/summary.json")) << ranks << " ranks: " << result.errors;
  }
}

}  // namespace
}  // namespace lockstep::test
