// What a rank tells of itself, whom a report blames for it, and how long ranks may wait before it counts as a
// stall, from ticks whose times the test makes up.
#include "comm/stall.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

#include "lockstep/base/process.h"
#include "support/error_text.h"

namespace lockstep::test::stall_test {

// The activity of this thread, while it lives.
class OwnActivity {
 public:
  OwnActivity() { own_activity = &activity_; }
  ~OwnActivity() { own_activity = nullptr; }
  OwnActivity(const OwnActivity&) = delete;
  OwnActivity& operator=(const OwnActivity&) = delete;
  Activity* operator->() { return &activity_; }

 private:
  Activity activity_;
};

TEST(OwnActivity, SaysWhatTheThreadWaitsInUntilTheCallIsOver) {
  OwnActivity mine;
  {
    const Waiting waiting(Call::kBarrier, 7, 2);
    EXPECT_EQ(mine->call, Call::kBarrier);
    EXPECT_EQ(mine->number, 7);
    EXPECT_EQ(mine->communicator, 2);
    EXPECT_EQ(mine->marks, 1U);
  }
  EXPECT_EQ(mine->call, Call::kNone);
  EXPECT_EQ(mine->marks, 2U);
}

TEST(OwnActivity, GetsOnWithEachStepAndPhase) {
  OwnActivity mine;
  note_step(4);
  note_phase(Phase::kCompute, 3);
  note_phase(Phase::kExchange);
  note_stage(1);
  EXPECT_EQ(mine->step, 4);
  EXPECT_EQ(mine->phase, Phase::kExchange);
  EXPECT_EQ(mine->bucket, 3);
  EXPECT_EQ(mine->stage, 1);
  EXPECT_EQ(mine->marks, 3U);
  note_step(5);
  EXPECT_EQ(mine->bucket, -1) << "none in this step";
}

TEST(OwnActivity, IsIdleOnceHoweverOftenItIsAsked) {
  OwnActivity mine;
  for (int i = 0; i < 3; ++i) note_idle(1);
  EXPECT_EQ(mine->call, Call::kIdle);
  EXPECT_EQ(mine->marks, 1U);
}

TEST(OwnActivity, IsNotThatOfOtherThreads) {
  OwnActivity mine;
  std::jthread([] {
    note_phase(Phase::kCheckpoint);
    const Waiting waiting(Call::kWait, 1, 0);
    note_idle(0);
  }).join();
  EXPECT_EQ(mine->marks, 0U);
  EXPECT_EQ(mine->phase, Phase::kStart);
}

void wait_in(Activity& rank, Call call, Index number) {
  rank.call = call;
  rank.number = number;
  rank.stuck = 61;
}

// Ranks of this process, from 0 on, that wait for nobody.
std::vector<Activity> ranks_of(std::size_t count) {
  std::vector<Activity> ranks(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    ranks[rank].rank = static_cast<int>(rank);
    ranks[rank].pid = ::getpid();
  }
  return ranks;
}

// Those that wait in barriers of these numbers.
std::vector<Activity> waiting(const std::vector<Index>& numbers) {
  std::vector<Activity> ranks = ranks_of(numbers.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) wait_in(ranks[rank], Call::kBarrier, numbers[rank]);
  return ranks;
}

// A process that the test has stopped.
class StoppedProcess {
 public:
  StoppedProcess() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  ~StoppedProcess() {
    if (pid_ > 0) end();
  }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  pid_t pid() const { return pid_; }
  pid_t end() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    return std::exchange(pid_, 0);
  }

 private:
  pid_t pid_;
};

TEST(MissingRanks, AreThoseInNoCall) {
  std::vector<Activity> ranks = waiting({7, 7, 7});
  ranks[1].call = Call::kNone;
  EXPECT_EQ(missing_ranks(ranks), std::vector{1});
}

TEST(MissingRanks, AreThoseThatAreStoppedOrGoneWhateverTheyWereIn) {
  StoppedProcess stopped, unreaped;
  std::vector<Activity> ranks = waiting({7, 7, 7, 7});
  ranks[0].pid = StoppedProcess().end();
  ranks[2].pid = stopped.pid();
  ranks[3].pid = unreaped.pid();
  ::kill(unreaped.pid(), SIGKILL);
  siginfo_t ended;
  ::waitid(P_PID, static_cast<id_t>(unreaped.pid()), &ended, WEXITED | WNOWAIT);
  EXPECT_EQ(missing_ranks(ranks), (std::vector{0, 2, 3}));
  const std::string text = describe_stall(ranks, 61, false);
  expect_parts(text, {"3 of 4 did not arrive: ranks 0, 2, 3\n", ") is gone, in phase start\n",
                      fmt::format("pid {}) is gone, in phase start", unreaped.pid()),
                      fmt::format("pid {}) is stopped, in phase start", stopped.pid())});
}

TEST(MissingRanks, AreTheMinorityWhereAllWait) {
  EXPECT_EQ(missing_ranks(waiting({8, 7, 8})), std::vector{1});
  std::vector<Activity> ranks = waiting({7, 7, 7});
  ranks[1].call = Call::kAllReduce;
  EXPECT_EQ(missing_ranks(ranks), std::vector{1});
}

TEST(MissingRanks, AreAllWhereNeitherSideHasMore) {
  EXPECT_EQ(missing_ranks(waiting({8, 7})), (std::vector{0, 1}));
}

TEST(MissingRanks, AreNoneWhereAllWaitInTheSameCall) {
  const std::vector<Activity> ranks = waiting({7, 7});
  EXPECT_TRUE(missing_ranks(ranks).empty());
  EXPECT_NE(describe_stall(ranks, 61, false).find("look at the network"), std::string::npos);
  EXPECT_NE(describe_stall(ranks, 61, true).find("for ranks of another one\n"), std::string::npos);
}

// The workers of each stage are a communicator of their own, and these have one number.
TEST(MissingRanks, AreNotSoughtAmongStagesThatWaitEachForItself) {
  std::vector<Activity> ranks = waiting({5, 5});
  for (Activity& rank : ranks) {
    rank.communicator = 1;
    rank.stage = rank.rank;
  }
  EXPECT_TRUE(missing_ranks(ranks).empty()) << "each may wait for the network";
  expect_parts(describe_stall(ranks, 61, false), {"part 1 of the ranks, in phase start, stage 0",
                                                  "part 1 of the ranks, in phase start, stage 1"});
}

TEST(StallReport, HasALineOfEachRank) {
  std::vector<Activity> ranks = waiting({7, 0});
  Activity& computes = ranks[1];
  computes.call = Call::kNone;
  computes.phase = Phase::kCompute;
  computes.step = 11;
  computes.bucket = 3;
  computes.stuck = 12;
  const std::string who = fmt::format("(host {}, pid {})", host_name(), ::getpid());
  EXPECT_EQ(describe_stall(ranks, 61, false),
            "stall: ranks have waited for 61.0 s; 1 of 2 did not arrive: rank 1\n"
            "  rank 0 " +
                who +
                " waits in barrier 7 of all ranks, in phase start, for 61.0 s\n"
                "  rank 1 " +
                who + " waits for nobody, in phase forward and backward of step 12, bucket 3, for 12.0 s");
}

TEST(StallReport, NamesTheStageTheMicroBatchAndTheDirection) {
  std::vector<Activity> ranks = waiting({7});
  ranks[0].communicator = 3;
  ranks[0].stage = 2;
  ranks[0].step = 11;
  ranks[0].bucket = 5;
  ranks[0].phase = Phase::kStageBackward;
  expect_parts(describe_stall(ranks, 61, false),
               {"barrier 7 of part 3 of the ranks, in phase backward of step 12, micro-batch 5, stage 2"});
  ranks[0].phase = Phase::kOptimizer;
  expect_parts(describe_stall(ranks, 61, false), {"in phase optimizer of step 12, bucket 5, stage 2"});
}

TEST(StallReport, OfAHostIsAboutItsRanksAlone) {
  std::vector<Activity> ranks = ranks_of(2);
  expect_parts(describe_stall(ranks, 61, true),
               {"stall: this host's ranks have not got on for 61.0 s, and wait for nobody\n",
                "\n  each host tells of its own ranks: one that says nothing is stopped or cut off"});
  wait_in(ranks[0], Call::kBarrier, 7);
  expect_parts(describe_stall(ranks, 61, true), {"1 of 2 on this host did not arrive: rank 1\n"});
}

// A rank that takes steps as long as these, ticked every second, and then gets on no more.
StallClock after_steps(double stall_seconds, std::initializer_list<int> lengths) {
  StallClock clock(stall_seconds);
  std::uint64_t marks = 1;
  Index step = 0;
  clock.tick(step, marks, 1);
  for (const int seconds : lengths) {
    for (int second = 1; second < seconds; ++second) clock.tick(step, marks, 1);
    clock.tick(++step, ++marks, 1);
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
  for (int second = 0; second < 100; ++second) clock.tick(-1, 1, 1);
  clock.tick(0, 2, 1);
  EXPECT_EQ(clock.limit(), 60);
}

TEST(StallClock, AGivenLimitHoldsWhateverStepsTake) {
  EXPECT_EQ(after_steps(7, {100, 2}).limit(), 7);
}

TEST(StallClock, ARankIsStuckSinceItLastGotOn) {
  StallClock clock = after_steps(0, {3});
  EXPECT_EQ(clock.stuck(), 0);
  for (int second = 1; second <= 50; ++second) {
    EXPECT_FALSE(clock.tick(1, 2, 1)) << "no mark is new";
    EXPECT_EQ(clock.stuck(), second);
  }
  EXPECT_EQ(clock.tick(1, 3, 0.5), 50.5) << "it got on within the step";
  EXPECT_EQ(clock.stuck(), 0);
}

// Suspended inside one long step: nothing gets on, and one tick comes after minutes.
TEST(StallClock, AJobThatWasSuspendedIsNotStuckForThatLong) {
  for (const double stall_seconds : {0.0, 2.0, 300.0}) {
    StallClock clock = after_steps(stall_seconds, {3});
    clock.tick(1, 2, clock.interval());
    EXPECT_FALSE(clock.tick(1, 2, 3600));
    EXPECT_LE(clock.stuck(), 3 * clock.interval());
    EXPECT_LT(clock.stuck(), clock.limit());
  }
}

TEST(StallClock, AStepInWhichTheJobWasSuspendedIsNotThatLong) {
  StallClock clock = after_steps(0, {3});
  clock.tick(1, 2, 1);
  clock.tick(1, 2, 3600);
  clock.tick(2, 3, 1);
  EXPECT_EQ(clock.limit(), 20 * (1 + 2 * clock.interval() + 1));
}

TEST(StallClock, TicksAreAsFrequentAsTheLimitAsksFor) {
  EXPECT_EQ(StallClock(0).interval(), 1);
  EXPECT_EQ(StallClock(1.5).interval(), 0.15);
  EXPECT_EQ(StallClock(0.001).interval(), 0.01);
  EXPECT_EQ(StallClock(600).interval(), 1);
}

}  // namespace lockstep::test::stall_test
