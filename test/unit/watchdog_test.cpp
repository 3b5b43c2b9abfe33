// The watchers of ranks that are threads: who reports a stall, how often, and what comes of it.
#include "lockstep/comm/watchdog.h"

#include "comm/stall.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "support/thread_ranks.h"
#include "support/trainer_process.h"

namespace lockstep::test::watchdog_test {

// The last of three ranks computes for so long, and the others wait for it.
void wait_for_the_last(double seconds, const CommOptions& options, Index ranks_per_node = 0) {
  run_thread_ranks(3, [&](Communicator& comm) {
    const Watchdog watchdog(comm, options, ranks_per_node);
    note_phase(Phase::kCompute);
    if (comm.rank() == 2) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    {
      const Waiting waiting(Call::kBarrier, 7, 0);
      comm.barrier();
    }
    for (int look = 0; look < 20; ++look) {  // in one of which the watcher sees that it is over
      note_phase(Phase::kCompute);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
}

std::string log_of(double seconds, double limit, Index ranks_per_node = 0) {
  testing::internal::CaptureStdout();
  wait_for_the_last(seconds, {.stall_seconds = limit, .abort_seconds = 0}, ranks_per_node);
  return testing::internal::GetCapturedStdout();
}

TEST(Watchdog, OneRankSaysOnceWhomTheOthersWaitForAndThatTheyGoOn) {
  const std::string log = log_of(2, 0.4);
  EXPECT_EQ(count_of(log, "1 of 3 did not arrive: rank 2\n"), 1) << log;
  EXPECT_EQ(count_of(log, "stall: "), 2) << log;
  EXPECT_EQ(count_of(log, "the ranks go on after"), 1) << log;
}

TEST(Watchdog, SaysNothingBelowItsLimit) {
  EXPECT_EQ(count_of(log_of(0.3, 2), "stall"), 0);
}

TEST(Watchdog, OfEachHostSaysWhatItsOwnRanksDo) {
  const std::string log = log_of(2, 0.4, 1);
  EXPECT_EQ(count_of(log, "for ranks of another one"), 2) << log;
  EXPECT_EQ(count_of(log, "wait for nobody"), 1) << log;
}

TEST(Watchdog, EndsAJobForWhoseRankNobodyComes) {
  const auto run = [] {
    start_log(0, LogTarget::kStandardError);
    wait_for_the_last(30, {.stall_seconds = 0.4, .abort_seconds = 0.5});
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kExitStalled),
              "1 of 3 did not arrive: rank 2(.|\n)*nobody has come");
}

}  // namespace lockstep::test::watchdog_test
