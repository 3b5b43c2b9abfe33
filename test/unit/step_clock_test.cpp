// Shares of the time of steps, from measured seconds.
#include "train/loop/rank_ledger.h"

#include "support/thread_ranks.h"

namespace lockstep::step_clock_test {

TimeSums step(TimeSums time, const ExchangeTime& exchange) {
  time.add_exchange(exchange);
  return time;
}

double sum_of(const TimeShares& shares) {
  return shares.data + shares.compute + shares.communication + shares.waiting + shares.idle;
}

// Of 16 seconds one is for data, three are waiting for another stage, four the exchange, of which one is
// waiting; the rest is computing.
TEST(TimeShares, EverySecondCountsOnce) {
  run_thread_ranks(1, [](Communicator& comm) {
    RankLedger ledger(comm, {}, {true});
    ledger.add(step({.data = 1, .forward = 2, .idle = 3, .optimizer = 0.5, .total = 16},
                    {.exchange = 4, .waiting = 1}),
               {});
    ledger.settle_asynchronous();
    const TimeShares shares = ledger.take_shares();
    EXPECT_DOUBLE_EQ(shares.data, 1.0 / 16);
    EXPECT_DOUBLE_EQ(shares.idle, 3.0 / 16);
    EXPECT_DOUBLE_EQ(shares.communication, 3.0 / 16);
    EXPECT_DOUBLE_EQ(shares.waiting, 1.0 / 16);
    EXPECT_DOUBLE_EQ(shares.compute, 8.0 / 16);
    EXPECT_DOUBLE_EQ(shares.forward, 2.0 / 16);
    EXPECT_DOUBLE_EQ(shares.optimizer, 0.5 / 16);
    EXPECT_DOUBLE_EQ(sum_of(shares), 1);
    EXPECT_FALSE(shares.hidden) << "no step was made for that";
    EXPECT_EQ(sum_of(ledger.take_shares()), 0) << "a share begins anew";
    EXPECT_DOUBLE_EQ(sum_of(ledger.shares()), 1) << "that of the run does not";
  });
}

// Shares are of the time of all ranks together, not means of the shares of each.
TEST(TimeShares, SecondsOfAllRanksAreAdded) {
  run_thread_ranks(2, [](Communicator& comm) {
    RankLedger ledger(comm, {}, {true, true});
    if (comm.rank() == 0) ledger.add(step({.data = 1, .total = 2}, {.exchange = 1}), {});
    if (comm.rank() == 1) ledger.add(step({.idle = 4, .total = 6}, {.exchange = 1}), {});
    ledger.settle();
    const TimeShares shares = ledger.take_shares();
    EXPECT_DOUBLE_EQ(shares.data, 1.0 / 8);
    EXPECT_DOUBLE_EQ(shares.idle, 4.0 / 8);
    EXPECT_DOUBLE_EQ(shares.communication, 2.0 / 8);
    EXPECT_DOUBLE_EQ(shares.compute, 1.0 / 8);
  });
}

// Clocks of ranks do not agree to the last digit: no more is waiting than the exchange took.
TEST(TimeShares, WaitingIsPartOfTheExchange) {
  run_thread_ranks(1, [](Communicator& comm) {
    RankLedger ledger(comm, {}, {true});
    ledger.add(step({.total = 10}, {.exchange = 2, .waiting = 3}), {});
    ledger.settle_asynchronous();
    const TimeShares shares = ledger.take_shares();
    EXPECT_DOUBLE_EQ(shares.waiting, 0.2);
    EXPECT_DOUBLE_EQ(shares.communication, 0);
    EXPECT_DOUBLE_EQ(sum_of(shares), 1);
  });
}

// Two steps whose exchange took 3 and 5 seconds beside backward, a quarter of all of it waiting, and one in
// which it took 8 without that, and 2 more of waiting.
TEST(TimeShares, WhatIsHiddenIsMissingFromTheExchangeBesideBackward) {
  run_thread_ranks(1, [](Communicator& comm) {
    RankLedger ledger(comm, {}, {true});
    ledger.add(step({.total = 10}, {.exchange = 3, .waiting = 1}), {});
    ledger.add(step({.total = 10}, {.exchange = 5, .waiting = 1.5}), {});
    ledger.add(step({.total = 10}, {.exchange = 10, .waiting = 2, .exchange_only = true}), {});
    ledger.settle_asynchronous();
    const TimeShares shares = ledger.take_shares();
    ASSERT_TRUE(shares.hidden);
    EXPECT_DOUBLE_EQ(*shares.hidden, 1 - 4 * 0.75 / 8);
    ledger.add(step({.total = 10}, {.exchange = 9}), {});
    ledger.add(step({.total = 10}, {.exchange = 8, .exchange_only = true}), {});
    ledger.settle_asynchronous();
    EXPECT_EQ(ledger.take_shares().hidden, 0) << "never less than nothing";
  });
}

// As stages of a model, one of which has a single bucket.
TEST(TimeShares, NothingIsHiddenWhereRanksMakeOtherSteps) {
  run_thread_ranks(2, [](Communicator& comm) {
    RankLedger ledger(comm, {}, {true, true});
    ledger.add(step({.total = 10}, {.exchange = 3}), {});
    ledger.add(step({.total = 10}, {.exchange = 8, .exchange_only = comm.rank() == 1}), {});
    ledger.settle();
    EXPECT_FALSE(ledger.take_shares().hidden);
  });
}

TEST(TimeShares, MeasuresAStepInSixtyFourAndNotTheFirst) {
  for (Index number = 0; number < 200; ++number) {
    const bool due = number == 24 || number == 88 || number == 152;
    EXPECT_EQ(measured_in(number) == Measured::kExchangeOnly, due) << number;
  }
}

}  // namespace lockstep::step_clock_test
