// Shares of the time of steps, from measured seconds.
#include "train/loop/rank_ledger.h"

#include <gtest/gtest.h>

#include "support/thread_ranks.h"

namespace lockstep {
namespace {

StepTime step(const ExchangeTime& exchange) {
  return {.data = 1, .forward = 2, .idle = 3, .optimizer = 0.5, .total = 16, .exchange = exchange};
}

double sum_of(const TimeShares& shares) {
  return shares.data + shares.compute + shares.communication + shares.waiting + shares.idle;
}

// Of 16 seconds one is for data, three are waiting for another stage, four the exchange, of which one is
// waiting; the rest is computing.
TEST(StepClock, EverySecondCountsOnce) {
  run_thread_ranks(1, [](Communicator& comm) {
    StepClock clock;
    clock.add(step({.exchange = 4, .waiting = 1}));
    clock.add_waiting(1);
    const TimeShares shares = clock.take_shares(comm);
    EXPECT_DOUBLE_EQ(shares.data, 1.0 / 16);
    EXPECT_DOUBLE_EQ(shares.idle, 3.0 / 16);
    EXPECT_DOUBLE_EQ(shares.communication, 3.0 / 16);
    EXPECT_DOUBLE_EQ(shares.waiting, 1.0 / 16);
    EXPECT_DOUBLE_EQ(shares.compute, 8.0 / 16);
    EXPECT_DOUBLE_EQ(shares.forward, 2.0 / 16);
    EXPECT_DOUBLE_EQ(shares.optimizer, 0.5 / 16);
    EXPECT_DOUBLE_EQ(sum_of(shares), 1);
    EXPECT_FALSE(shares.hidden) << "no step was made for that";
    const TimeShares nothing = clock.take_shares(comm);
    EXPECT_EQ(sum_of(nothing), 0) << "a share begins anew";
  });
}

// Shares are of the time of all ranks together, not means of the shares of each.
TEST(StepClock, SecondsOfAllRanksAreAdded) {
  run_thread_ranks(2, [](Communicator& comm) {
    StepClock clock;
    if (comm.rank() == 0) clock.add({.data = 1, .total = 2, .exchange = {.exchange = 1}});
    if (comm.rank() == 1) clock.add({.idle = 4, .total = 6, .exchange = {.exchange = 1}});
    const TimeShares shares = clock.take_shares(comm);
    EXPECT_DOUBLE_EQ(shares.data, 1.0 / 8);
    EXPECT_DOUBLE_EQ(shares.idle, 4.0 / 8);
    EXPECT_DOUBLE_EQ(shares.communication, 2.0 / 8);
    EXPECT_DOUBLE_EQ(shares.compute, 1.0 / 8);
  });
}

// Clocks of ranks do not agree to the last digit: no more is waiting than the exchange took.
TEST(StepClock, WaitingIsPartOfTheExchange) {
  run_thread_ranks(1, [](Communicator& comm) {
    StepClock clock;
    clock.add({.total = 10, .exchange = {.exchange = 2}});
    clock.add_waiting(3);
    const TimeShares shares = clock.take_shares(comm);
    EXPECT_DOUBLE_EQ(shares.waiting, 0.2);
    EXPECT_DOUBLE_EQ(shares.communication, 0);
    EXPECT_DOUBLE_EQ(sum_of(shares), 1);
  });
}

// Two steps whose exchange took 3 and 5 seconds beside backward, a quarter of all of it waiting, and one in
// which it took 8 without that, and 2 more of waiting.
TEST(StepClock, WhatIsHiddenIsMissingFromTheExchangeBesideBackward) {
  run_thread_ranks(1, [](Communicator& comm) {
    StepClock clock;
    clock.add({.total = 10, .exchange = {.exchange = 3}});
    clock.add({.total = 10, .exchange = {.exchange = 5}});
    clock.add({.total = 10, .exchange = {.exchange = 10, .waiting = 2, .exchange_only = true}});
    clock.add_waiting(4.5);
    const TimeShares shares = clock.take_shares(comm);
    ASSERT_TRUE(shares.hidden);
    EXPECT_DOUBLE_EQ(*shares.hidden, 1 - 4 * 0.75 / 8);
    clock.add({.total = 10, .exchange = {.exchange = 9}});
    clock.add({.total = 10, .exchange = {.exchange = 8, .exchange_only = true}});
    EXPECT_EQ(clock.take_shares(comm).hidden, 0) << "never less than nothing";
  });
}

TEST(StepClock, MeasuresAStepInSixtyFourAndNotTheFirst) {
  for (Index number = 0; number < 200; ++number) {
    const bool due = number == 24 || number == 88 || number == 152;
    EXPECT_EQ(StepClock::measured(number) == Measured::kExchangeOnly, due) << number;
  }
}

}  // namespace
}  // namespace lockstep
