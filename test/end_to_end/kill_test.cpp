// kill -9 of any rank at any moment: the job ends soon, says so by its exit code, and leaves nothing behind.
// LOCKSTEP_KILLS in the environment: how many moments for each strategy.
#include <csignal>

#include "support/running_job.h"
#include "support/seed.h"
#include "support/small_experiment.h"

namespace lockstep::test::kill_test {
namespace {

constexpr int kRanks = 3;
constexpr double kLongestLife = 1.2;  // seconds: the start takes about half of it
constexpr double kMaxSeconds = 10;

int moments() {
  const char* text = std::getenv("LOCKSTEP_KILLS");
  return text == nullptr ? 2 : std::atoi(text);
}

class AKilledRank : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(AKilledRank, EndsTheJobAndLeavesNothingBehind) {
  const SmallExperiment experiment;
  std::mt19937_64 random(seed());
  for (int moment = 0; moment < moments(); ++moment) {
    const auto victim = std::uniform_int_distribution<std::size_t>(0, kRanks - 1)(random);
    // Some are in the start, some in training, in each round of them.
    const double part = kLongestLife / moments();
    const double life = std::uniform_real_distribution<double>(part * moment, part * (moment + 1))(random);
    SCOPED_TRACE(fmt::format("rank {} after {:.3f} s", victim, life));
    // Evaluations take about as long as the steps between them.
    RunningJob job(kRanks, fmt::format("--config {} --run.dir {} --train.epochs 1000000 --run.progress none "
                                       "--distribute.strategy {}",
                                       experiment.config(), experiment.fresh_run(), GetParam().second));
    const pid_t pid = job.started_ranks().at(victim);
    ASSERT_GT(pid, 0) << job.errors();
    std::this_thread::sleep_for(std::chrono::duration<double>(life));
    ASSERT_EQ(::kill(pid, SIGKILL), 0) << job.errors();
    const int exit_code = job.wait(kMaxSeconds);
    // Open MPI 4.1's launcher can hang for ever after a death within MPI_Init (in PMIx_server_finalize): that
    // is not ours to mend. It must be the last that is left, or the last to keep others.
    const bool before_first_line = job.output().empty();
    if (exit_code == -1 && before_first_line) {
      job.kill_launcher();
    } else {
      EXPECT_NE(exit_code, -1) << "still there: " << job.output() << job.errors();
      EXPECT_NE(exit_code, 0);
      const std::string dead = fmt::format("process rank {} ", victim);  // as the launcher calls it
      EXPECT_TRUE(before_first_line || job.errors().find(dead) != std::string::npos) << job.errors();
    }
    EXPECT_EQ(job.processes_left(), 0);
    EXPECT_TRUE(job.memory_left().empty()) << testing::PrintToString(job.memory_left());
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, AKilledRank,
                         testing::Values(std::pair{"allreduce", "allreduce"}, std::pair{"zero1", "zero1"},
                                         std::pair{"central_storage", "central_storage"},
                                         std::pair{"synchronous_servers", "parameter_server"},
                                         std::pair{"asynchronous_servers",
                                                   "parameter_server --distribute.mode async"},
                                         std::pair{"stages",
                                                   "allreduce --distribute.stages 3 --model.layers "
                                                   "'dense(16) relu dense(8) relu dense(4)'"},
                                         std::pair{"local_sgd", "local_sgd"}),
                         [](const auto& test) { return test.param.first; });

}  // namespace
}  // namespace lockstep::test::kill_test
