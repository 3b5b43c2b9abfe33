// How long ranks may wait before it counts as a stall, from looks whose times the test makes up.
#include "comm/stall_clock.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace lockstep {
namespace {

// A rank that takes steps as long as these, looked at every second, and then gets on no more.
StallClock after_steps(double stall_seconds, std::initializer_list<int> lengths) {
  StallClock clock(stall_seconds);
  std::uint64_t marks = 1;
  Index step = 0;
  clock.look(step, marks, 1);
  for (const int seconds : lengths) {
    for (int second = 1; second < seconds; ++second) clock.look(step, marks, 1);
    clock.look(++step, ++marks, 1);
  }
  return clock;
}

TEST(StallClock, TheAutomaticLimitIsAMinuteAtLeast) {
  EXPECT_EQ(StallClock(0).limit(), 60);
  EXPECT_EQ(after_steps(0, {1, 2, 1}).limit(), 60);
}

TEST(StallClock, TheAutomaticLimitFollowsTheLongestStepWhereverItWas) {
  EXPECT_EQ(after_steps(0, {10}).limit(), 200);
  EXPECT_EQ(after_steps(0, {10, 1, 2}).limit(), 200);
  EXPECT_EQ(after_steps(0, {1, 4, 30, 4}).limit(), 600);
}

// Reading data before the first step may take long, and says nothing about steps.
TEST(StallClock, TheTimeBeforeTheFirstStepIsNoStep) {
  StallClock clock(0);
  for (int second = 0; second < 100; ++second) clock.look(-1, 1, 1);
  clock.look(0, 2, 1);
  EXPECT_EQ(clock.limit(), 60);
}

TEST(StallClock, AGivenLimitHoldsWhateverStepsTake) {
  EXPECT_EQ(after_steps(7, {100, 2}).limit(), 7);
}

TEST(StallClock, ARankIsStuckSinceItLastGotOn) {
  StallClock clock = after_steps(0, {3});
  EXPECT_EQ(clock.stuck(), 0);
  for (int second = 1; second <= 50; ++second) {
    EXPECT_FALSE(clock.look(1, 2, 1)) << "no mark is new";
    EXPECT_EQ(clock.stuck(), second);
  }
  EXPECT_EQ(clock.look(1, 3, 0.5), 50.5) << "it got on within the step";
  EXPECT_EQ(clock.stuck(), 0);
}

// Suspended inside one long step: nothing gets on, and one look comes after minutes.
TEST(StallClock, AJobThatWasSuspendedIsNotStuckForThatLong) {
  for (const double stall_seconds : {0.0, 2.0, 300.0}) {
    StallClock clock = after_steps(stall_seconds, {3});
    clock.look(1, 2, clock.interval());
    EXPECT_FALSE(clock.look(1, 2, 3600));
    EXPECT_LE(clock.stuck(), 3 * clock.interval());
    EXPECT_LT(clock.stuck(), clock.limit());
  }
}

TEST(StallClock, AStepInWhichTheJobWasSuspendedIsNotThatLong) {
  StallClock clock = after_steps(0, {3});
  clock.look(1, 2, 1);
  clock.look(1, 2, 3600);
  clock.look(2, 3, 1);
  EXPECT_EQ(clock.limit(), 20 * (1 + 2 * clock.interval() + 1));
}

TEST(StallClock, LooksAreAsFrequentAsTheLimitAsksFor) {
  EXPECT_EQ(StallClock(0).interval(), 1);
  EXPECT_EQ(StallClock(1.5).interval(), 0.15);
  EXPECT_EQ(StallClock(0.001).interval(), 0.01);
  EXPECT_EQ(StallClock(600).interval(), 1);
}

}  // namespace
}  // namespace lockstep
