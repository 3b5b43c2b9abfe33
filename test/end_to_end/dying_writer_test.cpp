// A rank that dies at any file call of its checkpoints: what was finished before is whole, and the run goes
// on from there as if nothing had happened. LOCKSTEP_EVERY_CALL in the environment: at every call, else at
// one; crash_test looks at what each call would leave.
#include <cstdio>
#include <cstdlib>

#include "support/file_faults.h"
#include "support/saved_runs.h"
#include "support/trainer_runs.h"

namespace lockstep::test::dying_writer_test {
namespace {

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

}  // namespace
}  // namespace lockstep::test::dying_writer_test
