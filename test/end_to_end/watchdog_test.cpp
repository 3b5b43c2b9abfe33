// Ranks that others wait for in vain: they are named, and the job ends with its own exit code and leaves
// nothing behind.
#include <csignal>

#include "lockstep/comm/checked_communicator.h"
#include "support/running_job.h"
#include "support/trainer_runs.h"

namespace lockstep::test::watchdog_test {
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

  static void expect_stalled(RunningJob& job) {
    EXPECT_EQ(job.wait(20), kExitStalled) << job.output() << job.errors();
    EXPECT_EQ(job.processes_left(), 0);
    EXPECT_TRUE(job.memory_left().empty()) << testing::PrintToString(job.memory_left());
  }

  static void expect_named(RunningJob& job, const std::string& culprit) {
    expect_stalled(job);
    EXPECT_EQ(count_of(job.errors(), "did not arrive"), 1) << job.errors();
    EXPECT_EQ(count_of(job.errors(), "  rank "), 3) << "a line of each rank: " << job.errors();
    expect_parts(job.errors(),
                 {"1 of 3 did not arrive: rank " + culprit + "\n", "  rank " + culprit + " (host "});
  }

  // Each rank is a host of its own.
  static constexpr const char* kThreeHosts = "--comm.abort_seconds 0.5 --debug.ranks_per_node 1 ";

  SmallExperiment experiment_;
};

// With a launcher that gives ranks their usual time before it kills them.
TEST_F(WatchdogRuns, AStoppedRankIsNamedAndTheJobEnds) {
  const UsualLauncher usual;
  RunningJob job(3, arguments("--comm.abort_seconds 0.5"));
  ASSERT_TRUE(job.says("rank 2 loaded", 60)) << job.errors();
  ::kill(job.started_ranks().at(1), SIGSTOP);
  expect_named(job, "1");
  expect_parts(job.errors(), {") is stopped, in phase ", "unless they come (comm.abort_seconds)\n",
                              "stall: nobody has come for "});
}

TEST_F(WatchdogRuns, TheFirstRankIsNamedByAnother) {
  RunningJob job(3, arguments("--comm.abort_seconds 0.5"));
  ASSERT_TRUE(job.says("rank 2 loaded", 60)) << job.errors();
  ::kill(job.started_ranks().at(0), SIGSTOP);
  expect_named(job, "0");
}

TEST_F(WatchdogRuns, AnEndlessLoopIsNamedWithItsPhaseAndStep) {
  RunningJob job(3, arguments("--comm.abort_seconds 0.5 --debug.hang_rank 1 --debug.hang_step 5"));
  expect_named(job, "1");
  expect_parts(job.errors(), {" waits for nobody, in phase forward and backward of step 6, for ",
                              " waits in ", " of step 6, "});
}

TEST_F(WatchdogRuns, EachHostTellsOfItsOwnRanks) {
  RunningJob job(3, arguments(std::string(kThreeHosts) + "--debug.hang_rank 1 --debug.hang_step 5"));
  expect_stalled(job);
  EXPECT_EQ(count_of(job.errors(), "did not arrive"), 0) << job.errors();
  EXPECT_EQ(count_of(job.errors(), " waits in "), 2) << job.errors();
  expect_parts(job.errors(), {"all of this host wait in the same call, for ranks of another one\n",
                              "this host's ranks have not got on for ",
                              " waits for nobody, in phase forward and backward of step 6, for ",
                              "one that says nothing is stopped or cut off\n"});
}

TEST_F(WatchdogRuns, AHostThatIsStoppedIsTheOneThatSaysNothing) {
  RunningJob job(3, arguments(kThreeHosts));
  ASSERT_TRUE(job.says("rank 2 loaded", 60)) << job.errors();
  ::kill(job.started_ranks().at(2), SIGSTOP);
  expect_stalled(job);
  expect_parts(job.errors(), {"  rank 0 (host ", "  rank 1 (host "});
  EXPECT_EQ(count_of(job.errors(), "  rank 2 (host "), 0) << job.errors();
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
    expect_named(*job, "2");
    expect_parts(job->errors(), {kChecksCollectives ? " waits in all_gather " : " waits in barrier "});
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
  expect_no_parts(job.errors(), {"stall"});
}

}  // namespace
}  // namespace lockstep::test::watchdog_test
