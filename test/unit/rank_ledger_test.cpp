// Ranks that arrive at times that the test sets.
#include "train/loop/rank_ledger.h"

#include "support/thread_ranks.h"

namespace lockstep::rank_ledger_test {
constexpr std::int64_t kTick = 100'000'000;  // ns

// How long the ranks compute in a step, in ticks; then all exchange for 2 ticks.
using ComputeTime = std::function<std::int64_t(int rank, Index step)>;

// The ledger of rank 0 after some windows of 10 steps.
RankTimes ledger_of(int ranks, const std::vector<std::string>& hosts, Index windows,
                    const ComputeTime& compute) {
  RankTimes times;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    RankLedger ledger(comm, hosts, std::vector<bool>(static_cast<std::size_t>(ranks), true));
    std::int64_t now = 0;
    for (Index step = 0; step < 10 * windows; ++step) {
      std::int64_t last = 0;
      for (int rank = 0; rank < ranks; ++rank) last = std::max(last, compute(rank, step));
      const std::int64_t own = compute(comm.rank(), step) * kTick, end = last * kTick + 2 * kTick;
      const Arrival arrival{now + own, now + end};
      TimeSums time{.data = 1e-9 * static_cast<double>(own) / 4, .total = 1e-9 * static_cast<double>(end)};
      time.add_exchange({.exchange = 1e-9 * static_cast<double>(end - own)});
      ledger.add(time, std::span(&arrival, 1));
      now += end;
      if (step % 10 == 9) ledger.settle();
    }
    if (comm.rank() == 0) times = ledger.times();
  });
  times.load = 0;  // whatever else runs here
  return times;
}

TEST(RankLedger, KeepsWaitingApartFromTheExchange) {
  const RankTimes times =
      ledger_of(3, {"n1", "n1", "n1"}, 4, [](int rank, Index) { return rank == 1 ? 13 : 8; });
  EXPECT_NEAR(times.ranks[0].waiting, 40 * 0.5, 1e-9);
  EXPECT_NEAR(times.ranks[1].waiting, 0, 1e-9);
  EXPECT_NEAR(times.ranks[2].waiting, 40 * 0.5, 1e-9);
  for (const RankTime& rank : times.ranks) {
    EXPECT_NEAR(rank.exchange, 40 * 0.2, 1e-9);
    EXPECT_NEAR(rank.total(), 40 * 1.5, 1e-9) << "the ledger adds up to the time of the steps";
    EXPECT_NEAR(rank.data, rank.own() / 4, 1e-9);
  }
}

TEST(RankLedger, ChargesTheRankThatComesLast) {
  const RankTimes times =
      ledger_of(3, {"n1", "n1", "n1"}, 4, [](int rank, Index) { return rank == 1 ? 13 : 8; });
  EXPECT_NEAR(times.ranks[1].delay, 40 * 0.5, 1e-9);
  EXPECT_EQ(std::tuple(times.ranks[0].delay, times.ranks[1].slowness, times.ranks[0].slowness),
            std::tuple(0, Slowness::kChronic, Slowness::kNone));
  EXPECT_NEAR(times.ranks[1].to_best, 13.0 / 8, 1e-6);
  EXPECT_NEAR(times.cost(times.ranks[1].delay), 5.0 / 15, 1e-6);
  const std::vector<std::string> lines = describe_slow_ranks(times);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(
      lines[0],
      "slow: rank 1 (host n1), chronic: slower than others in 4 of 4 windows; its data and compute take "
      "1.63 times those of the fastest rank and 1.00 times its own best; waiting for it costs 33.3 % of "
      "the time");
}

TEST(RankLedger, TellsASlowWindowFromASlowRank) {
  const RankTimes times =
      ledger_of(2, {}, 5, [](int rank, Index step) { return rank == 1 && step >= 40 ? 12 : 6; });
  EXPECT_EQ(times.ranks[1].slowness, Slowness::kTransient);
  EXPECT_EQ(times.ranks[1].slow_windows, 1);
  EXPECT_NEAR(times.ranks[1].to_own, 7.2 / 6, 1e-6);
}

// The two ranks of host b are slow together: neither is alone in delaying the others, their host is.
TEST(RankLedger, ChargesTheHostOfRanksThatAreSlowTogether) {
  const RankTimes times =
      ledger_of(4, {"a", "a", "b", "b"}, 3, [](int rank, Index) { return rank < 2 ? 8 : 18; });
  ASSERT_EQ(times.hosts.size(), 2U);
  EXPECT_NEAR(times.hosts[1].delay, 30 * 1.0, 1e-9);
  EXPECT_EQ(times.hosts[0].delay, 0);
  EXPECT_EQ(times.ranks[3].delay, 0);
  const std::vector<std::string> lines = describe_slow_ranks(times);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "slow: host b costs 50.0 % of the node-hours: all wait for its 2 ranks");
}

// The last rank is late for two exchanges; the other waited at the second alone, not at the first.
TEST(RankLedger, ChargesNoMoreThanOthersWaited) {
  RankTimes times;
  run_thread_ranks(2, [&](Communicator& comm) {
    RankLedger ledger(comm, {}, {true, true});
    const bool late = comm.rank() == 1;
    const std::array<Arrival, 3> arrivals{
        Arrival{late ? 50 * kTick : 10 * kTick, late ? 51 * kTick : 11 * kTick},
        Arrival{late ? 52 * kTick : 12 * kTick, 53 * kTick},
        Arrival{late ? 60 * kTick : 55 * kTick, 61 * kTick}};
    TimeSums time{.total = 6.1};
    time.add_exchange({.exchange = 4.0});
    ledger.add(time, arrivals);
    ledger.settle();
    if (comm.rank() == 0) times = ledger.times();
  });
  EXPECT_NEAR(times.ranks[1].delay, 0.1 + 0.2 + 0.5, 1e-6);
  EXPECT_EQ(times.ranks[0].delay, 0);
}

TEST(RankLedger, NamesNobodyInARunOfSecondsOrBesideBusyPrograms) {
  RankTimes times = ledger_of(3, {}, 4, [](int rank, Index) { return rank == 1 ? 13 : 8; });
  EXPECT_EQ(slow_ranks(times), std::vector<std::size_t>{1});
  RankTimes other = times;
  other.seconds = 29;
  EXPECT_TRUE(describe_slow_ranks(other).empty());
  other = times;
  other.ranks[1].to_best = 1.09;
  EXPECT_TRUE(describe_slow_ranks(other).empty());
  other = times;
  other.cores = 2;
  other.load = 2.6;
  EXPECT_EQ(describe_slow_ranks(other).size(), 1U) << "its own ranks keep that many cores busy";
  other.load = 18.2;
  EXPECT_TRUE(describe_slow_ranks(other).empty()) << "some ranks are as fast as in their best window";
  for (RankTime& rank : other.ranks) rank.to_own = 1.1;
  EXPECT_EQ(describe_slow_ranks(other),
            (std::vector<std::string>{
                "this machine is busy (load 18 on 2 cores): all ranks are slower than their own best"}));
  other.load = 0;
  EXPECT_EQ(describe_slow_ranks(other).size(), 1U);
}

TEST(RankLedger, NobodyIsSlowWhereAllAreEqual) {
  const RankTimes times = ledger_of(2, {"a", "b"}, 3, [](int, Index) { return 8; });
  EXPECT_TRUE(describe_slow_ranks(times).empty());
  EXPECT_NEAR(times.ranks[0].waiting, 0, 1e-9);
}

// One step whose exchange nothing hid, one of which backward hid three quarters, and one without an exchange.
TEST(RankLedger, SaysHowMuchOfTheExchangeIsHiddenWhereSomeStepsHadNone) {
  run_thread_ranks(1, [&](Communicator& comm) {
    RankLedger ledger(comm, {}, {true});
    TimeSums time{.total = 1};
    time.add_exchange({.exchange = 0.4, .exchange_only = true});
    time.add_exchange({.exchange = 0.1, .waiting = 0.05});
    ledger.add(time, {});
    ledger.settle_asynchronous();
    const double beside = 0.1 * (1 - 0.05 / 0.5);
    EXPECT_NEAR(ledger.shares().hidden.value(), 1 - beside / 0.4, 1e-9);
    TimeSums without{.total = 1};
    without.add_exchange({});
    ledger.add(without, {});
    ledger.settle_asynchronous();
    EXPECT_NEAR(ledger.shares().hidden.value(), 1 - beside / 2 / 0.4, 1e-9);
    EXPECT_NEAR(ledger.shares().communication, 0.225, 1e-9);
    EXPECT_NEAR(ledger.shares().waiting, 0.025, 1e-9);
  });
}

// A rank without replicas is early everywhere; nobody is measured by it.
TEST(RankLedger, MeasuresNobodyByARankThatHostsNothing) {
  RankTimes times;
  run_thread_ranks(2, [&](Communicator& comm) {
    RankLedger ledger(comm, {}, {true, false});
    TimeSums time{.total = comm.rank() == 0 ? 0.010 : 0.001};
    time.add_exchange({});
    ledger.add(time, {});
    ledger.settle();
    if (comm.rank() == 0) times = ledger.times();
  });
  EXPECT_EQ(times.ranks[0].slowness, Slowness::kNone);
  EXPECT_EQ(times.ranks[0].to_best, 1);
}

}  // namespace lockstep::rank_ledger_test
