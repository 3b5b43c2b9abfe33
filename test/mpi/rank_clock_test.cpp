// One clock for all ranks, although each has its own: wrong by seconds, and drifting.
#include "lockstep/comm/rank_clock.h"

#include "lockstep/base/trace.h"
#include "support/ranks.h"

namespace lockstep::rank_clock_test {
namespace {

constexpr std::int64_t kMicrosecond = 1000;

// The clock of this machine, by `rank` times 7 seconds wrong.
OwnClock wrong_clock(int rank) {
  return {[=] { return trace_clock() + rank * 7'000'000'000; }, rank};
}

TEST(RankClock, KnowsTheDistanceWithinItsErrorBound) {
  test::on_ranks([](Communicator& comm) {
    RankClock clock(comm, wrong_clock(comm.rank()));
    clock.measure();
    const std::int64_t distance = clock.reading().offset + comm.rank() * 7'000'000'000;
    EXPECT_LE(std::abs(distance), clock.reading().error);
  });
}

// On a machine with other work some round trips are slow: the best of several attempts counts.
TEST(RankClock, AgreesWithin50MicrosecondsOnOneMachine) {
  test::on_ranks([](Communicator& comm) {
    RankClock clock(comm, wrong_clock(comm.rank()));
    std::int64_t best = 1'000 * 1'000 * kMicrosecond;
    for (int attempt = 0; attempt < 50; ++attempt) {
      clock.measure();
      best = std::min(best, std::abs(clock.reading().offset + comm.rank() * 7'000'000'000));
    }
    EXPECT_LT(best, 50 * kMicrosecond);
    RecordProperty("microseconds", std::to_string(static_cast<double>(best) / kMicrosecond));
  });
}

// Clocks that the test moves: without a way between the two looks at a clock, the offsets are exact. A rate
// is known after a second, and a jump is no drift.
TEST(RankClock, CorrectsTheDriftBetweenAndBehindTwoMeasurements) {
  struct Case {
    double drift;
    std::int64_t between;
    bool corrected;
  };
  for (const Case& one : {Case{3e-4, 2'000'000'000, true},
                          {-3e-4, 1'002'000'000, true},
                          {3e-4, 900'000'000, false},
                          {2e-3, 2'000'000'000, false}}) {
    test::on_ranks({2, 3}, [&](Communicator& comm) {
      const double drift = comm.rank() * one.drift;
      std::int64_t now = 5'000'000'000;
      const OwnClock own{
          [&] { return now + comm.rank() * 7'000'000'000 + std::llround(drift * static_cast<double>(now)); },
          comm.rank()};
      RankClock clock(comm, own);
      clock.measure();
      now += one.between;
      clock.measure();
      EXPECT_EQ(clock.reading().error, 0);
      EXPECT_EQ(clock.common(own.now()), now);
      for (const std::int64_t later : {-400'000'000, 300'000'000}) {
        now += later;
        const double wrong = one.corrected ? 0 : drift * static_cast<double>(later);
        EXPECT_NEAR(static_cast<double>(clock.common(own.now()) - now), wrong, 2e5 * std::abs(drift))
            << later;
        now -= later;
      }
    });
  }
}

TEST(RankClock, TakesTheClockOfOneMachineAsItIs) {
  test::on_ranks([](Communicator& comm) {
    RankClock clock(comm);
    clock.measure();
    EXPECT_EQ(clock.reading().offset, 0);
    EXPECT_EQ(clock.reading().error, 0);
    EXPECT_EQ(clock.common(12345), 12345);
  });
}

}  // namespace
}  // namespace lockstep::rank_clock_test
