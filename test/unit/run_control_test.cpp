// What ranks agree on between two steps, and the checksums that are sent with it.
#include "lockstep/train/loop/run_control.h"

#include "support/faulty_communicator.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::run_control_test {

constexpr int kRanks = 3;

bool cancel(const std::array<std::uint64_t, kRanks>& checksums) {
  bool found = false;
  run_thread_ranks(kRanks, [&](Communicator& comm) {
    RunControl control(comm, {});
    EXPECT_FALSE(control.look(at(checksums, comm.rank())));
    if (comm.rank() == 0) found = control.checksums_agree();
  });
  return found;
}

TEST(RunControl, AddsTheChecksumsOfAllRanks) {
  const std::uint64_t high = std::uint64_t{1} << 63U;
  EXPECT_TRUE(cancel({0, 0, 0}));
  EXPECT_TRUE(cancel({5, 7, std::uint64_t{0} - 12}));
  EXPECT_TRUE(cancel({high, high, 0}));
  EXPECT_TRUE(cancel({0xffffffff, 1, std::uint64_t{0} - (std::uint64_t{1} << 32U)}));
  EXPECT_FALSE(cancel({5, 7, std::uint64_t{0} - 13}));
  EXPECT_FALSE(cancel({high, 0, 0}));
  EXPECT_FALSE(cancel({0, 0, std::uint64_t{1} << 32U}));
}

// Without checksums they say nothing of those of an earlier agreement.
TEST(RunControl, ForgetsTheChecksumsAtTheNextAgreement) {
  run_thread_ranks(kRanks, [](Communicator& comm) {
    RunControl control(comm, {});
    control.look(1);
    EXPECT_FALSE(control.checksums_agree());
    control.agree();
    EXPECT_TRUE(control.checksums_agree());
  });
}

// Looks that take no time are many in a tenth of a second; but one that is slow may come at any moment.
TEST(RunControl, LetsRanksAgreeAtTheFirstLookAndThenAtMostTwiceAsFarApartEachTime) {
  run_thread_ranks(1, [](Communicator& comm) {
    const test::Fault none;
    test::CallCount agreements;
    test::FaultyCommunicator counting(comm, none, agreements);
    RunControl control(counting, {});
    Index last = 0;  // look that agreed
    Index most = 1;  // looks until the next one does
    for (Index look = 1; look <= 3000; ++look) {
      const Index before = agreements.calls;
      control.look();
      EXPECT_LE(look - last, most) << "looks without an agreement";
      if (agreements.calls == before) continue;
      most = 2 * (look - last);
      last = look;
    }
    EXPECT_GT(last, 0);
    EXPECT_LT(agreements.calls, 300) << "not at every look";
  });
}

TEST(RunControl, TellsEveryRankOfAWishAtOnceWhereChecksumsAreSent) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "stop";
  std::ofstream(file) << "";
  run_thread_ranks(kRanks, [&](Communicator& comm) {
    RunControl control(comm, {.stop_file = file});
    EXPECT_TRUE(control.look(0));
    EXPECT_TRUE(control.stops());
    EXPECT_NE(control.stop_reason().find("the file"), std::string::npos);
  });
}

TEST(RunControl, AsksForACheckpointOnceInEachInterval) {
  run_thread_ranks(1, [](Communicator& comm) {
    constexpr double kSeconds = 1;
    RunControl control(comm, {.checkpoint_seconds = kSeconds});
    EXPECT_FALSE(control.agree()) << "not at the start";
    std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
    EXPECT_TRUE(control.agree());
    EXPECT_TRUE(control.checkpoint_due());
    EXPECT_TRUE(control.agree()) << "until one is taken";
    control.checkpoint_taken();
    EXPECT_FALSE(control.checkpoint_due());
    EXPECT_FALSE(control.agree()) << "the next is due an interval later";
  });
}

TEST(RunControl, KeepsTimeForTheCheckpointAsTheLastOneTook) {
  run_thread_ranks(1, [](Communicator& comm) {
    double last = 0;
    RunControl control(comm, {.seconds_left = 30, .last_checkpoint = [&last] { return last; }});
    EXPECT_FALSE(control.agree()) << "3 s are enough where none was made";
    last = 20;
    EXPECT_TRUE(control.agree());
    EXPECT_EQ(control.stop_reason(), "the time limit (43 s are kept in reserve)");
  });
}

}  // namespace lockstep::run_control_test
