// Ranks that others wait for in vain: they are named, and the job ends with its own exit code and leaves
// nothing behind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "lockstep/base/errors.h"
#include "lockstep/base/timer.h"
#include "support/running_job.h"
#include "support/small_experiment.h"
#include "support/trainer_process.h"

namespace lockstep::test {
namespace {

// While it lives, launchers start as they do for users and not as the other tests here have them.
class UsualLauncher {
 public:
  UsualLauncher() { ::unsetenv(kVariable); }
  ~UsualLauncher() {
    if (!before_.empty()) ::setenv(kVariable, before_.c_str(), 1);
  }
  UsualLauncher(const UsualLauncher&) = delete;
  UsualLauncher& operator=(const UsualLauncher&) = delete;

 private:
  static std::string value() {
    const char* text = std::getenv(kVariable);
    return text == nullptr ? "" : text;
  }

  static constexpr const char* kVariable = "OMPI_MCA_odls_base_sigkill_timeout";
  const std::string before_ = value();
};

class WatchdogRuns : public testing::Test {
 protected:
  std::string arguments(const std::string& more) const {
    return fmt::format(
        "--config {} --run.dir {} --train.epochs 100000 --eval.every never --run.progress none "
        "--comm.stall_seconds 1.5 {}",
        experiment_.config(), experiment_.fresh_run(), more);
  }

  static void expect_stalled(RunningJob& job, const std::string& culprit) {
    EXPECT_EQ(job.wait(20), kExitStalled) << job.output() << job.errors();
    EXPECT_EQ(job.processes_left(), 0);
    EXPECT_TRUE(job.memory_left().empty()) << testing::PrintToString(job.memory_left());
    EXPECT_EQ(count_of(job.errors(), "did not arrive"), 1) << job.errors();
    EXPECT_NE(job.errors().find("1 of 3 did not arrive: rank " + culprit + "\n"), std::string::npos)
        << job.errors();
    EXPECT_NE(job.errors().find("  rank " + culprit + " (host "), std::string::npos) << job.errors();
  }

  SmallExperiment experiment_;
};

// With a launcher that gives ranks their usual time before it kills them.
TEST_F(WatchdogRuns, AStoppedRankIsNamedAndTheJobEnds) {
  const UsualLauncher usual;
  RunningJob job(3, arguments("--comm.abort_seconds 0.5"));
  ASSERT_TRUE(job.says("rank 2 loaded", 60)) << job.errors();
  ::kill(job.started_ranks().at(1), SIGSTOP);
  expect_stalled(job, "1");
  EXPECT_NE(job.errors().find("its process is stopped; last seen in phase "), std::string::npos)
      << job.errors();
}

TEST_F(WatchdogRuns, TheFirstRankIsNamedByAnother) {
  RunningJob job(3, arguments("--comm.abort_seconds 0.5"));
  ASSERT_TRUE(job.says("rank 2 loaded", 60)) << job.errors();
  ::kill(job.started_ranks().at(0), SIGSTOP);
  expect_stalled(job, "0");
}

TEST_F(WatchdogRuns, AnEndlessLoopIsNamedWithItsStep) {
  RunningJob job(3, arguments("--comm.abort_seconds 0.5 --debug.hang_rank 1 --debug.hang_step 5"));
  expect_stalled(job, "1");
  EXPECT_NE(job.errors().find("forward and backward of step 6, samples 120 to 143"), std::string::npos)
      << job.errors();
}

// Each rank a node of its own: they meet in the run directory.
TEST_F(WatchdogRuns, RanksOfOtherNodesAreNamedWithTheirPhase) {
  RunningJob job(3, arguments("--comm.abort_seconds 0.5 --debug.ranks_per_node 1 --debug.hang_rank 1 "
                              "--debug.hang_step 5"));
  expect_stalled(job, "1");
  EXPECT_NE(job.errors().find("forward and backward of step 6"), std::string::npos) << job.errors();
}

TEST_F(WatchdogRuns, ANodeThatIsStoppedIsNamed) {
  RunningJob job(3, arguments("--comm.abort_seconds 0.5 --debug.ranks_per_node 1"));
  ASSERT_TRUE(job.says("rank 2 loaded", 60)) << job.errors();
  ::kill(job.started_ranks().at(2), SIGSTOP);
  expect_stalled(job, "2");
  EXPECT_NE(job.errors().find("its host does not answer"), std::string::npos) << job.errors();
}

TEST_F(WatchdogRuns, ARankThatLeavesOutACollectiveIsNamed) {
  // Which do not exchange over all ranks: where collectives are checked, that would be found at once. Both
  // jobs wait at the same time.
  const std::string skip =
      "--comm.abort_seconds 0.5 --debug.hang_rank 2 --debug.hang_step 5 --debug.hang skip "
      "--distribute.strategy ";
  RunningJob shared(3, arguments(skip + "allreduce --distribute.algorithm shared"));
  RunningJob central(3, arguments(skip + "central_storage"));
  for (RunningJob* job : {&shared, &central}) {
    SCOPED_TRACE(job == &shared ? "shared" : "central_storage");
    expect_stalled(*job, "2");
    EXPECT_NE(job->errors().find("waiting in barrier "), std::string::npos) << job->errors();
  }
}

TEST_F(WatchdogRuns, AfterAReportTheRanksGoOnWhereTheMissingOneComes) {
  RunningJob job(2, arguments("--comm.abort_seconds 60"));
  ASSERT_TRUE(job.says("rank 1 loaded", 20)) << job.errors();
  const pid_t stopped = job.started_ranks().at(1);
  ::kill(stopped, SIGSTOP);
  ASSERT_TRUE(job.says("1 of 2 did not arrive: rank 1", 20)) << job.errors();
  ::kill(stopped, SIGCONT);
  EXPECT_TRUE(job.says("the ranks go on after", 20)) << job.errors();
  EXPECT_EQ(job.wait(0.5), -1);
}

// As batch systems do to let another job pass.
TEST_F(WatchdogRuns, AJobThatIsSuspendedAsAWholeBlamesNobody) {
  RunningJob job(2, arguments("--comm.abort_seconds 0.5"));
  ASSERT_TRUE(job.says("rank 1 loaded", 20)) << job.errors();
  const std::vector<pid_t> ranks = job.started_ranks();
  for (const pid_t pid : ranks) ::kill(pid, SIGSTOP);
  EXPECT_EQ(job.wait(2), -1);
  for (const pid_t pid : ranks) ::kill(pid, SIGCONT);
  EXPECT_EQ(job.wait(1.5), -1);
  EXPECT_EQ(job.errors().find("stall"), std::string::npos) << job.errors();
}

}  // namespace
}  // namespace lockstep::test
