// The team runs all its threads each time, hands exceptions on, and can be used again after them.
#include "lockstep/base/thread_team.h"

#include <barrier>

#include "support/error_text.h"

namespace lockstep::thread_team_test {

TEST(ThreadTeam, RunsEveryThreadOnceEachTime) {
  for (const int size : {1, 2, 5}) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    std::vector<int> counts(static_cast<std::size_t>(size));
    for (int round = 1; round <= 200; ++round) {
      team.run([&counts](int thread) { ++at(counts, thread); });
      EXPECT_EQ(counts, std::vector<int>(static_cast<std::size_t>(size), round));
    }
  }
}

TEST(ThreadTeam, RunsAtTheSameTimeAndTheCallerIsThreadZero) {
  ThreadTeam team(3);
  std::barrier all_are_here(3);
  std::vector<std::thread::id> ids(3);
  team.run([&](int thread) {
    all_are_here.arrive_and_wait();  // never returns if the threads run one after the other
    at(ids, thread) = std::this_thread::get_id();
  });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[0]);
  EXPECT_NE(ids[2], ids[1]);
}

TEST(ThreadTeam, ThrowsTheFirstExceptionAfterAllAreDone) {
  ThreadTeam team(4);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> done = 0;
    EXPECT_EQ(test::error_text<std::runtime_error>([&] {
                team.run([&done](int thread) {
                  ++done;
                  if (thread == 1 || thread == 3)
                    throw std::runtime_error("thread " + std::to_string(thread));
                });
              }),
              "thread 1");
    EXPECT_EQ(done, 4);
  }
}

TEST(ThreadTeam, ExceptionOfTheCallerWaitsForTheOthers) {
  ThreadTeam team(2);
  std::atomic<bool> other_done = false;
  EXPECT_THROW(team.run([&other_done](int thread) {
    if (thread == 0) throw std::runtime_error("caller");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    other_done = true;
  }),
               std::runtime_error);
  EXPECT_TRUE(other_done);
}

TEST(ThreadTeam, PartsAreAlignedAndCoverARangeOnce) {
  ThreadTeam team(3);
  for (const Range range : {Range{16, 16}, Range{16, 20}, Range{32, 1000}}) {
    std::vector<std::atomic<int>> visits(1000);
    team.run_parts(range, [&](Range mine) {
      EXPECT_EQ((mine.begin - range.begin) % kAlignment, 0);
      for (Index i = mine.begin; i < mine.end; ++i) ++at(visits, i);
    });
    for (Index i = 0; i < 1000; ++i) EXPECT_EQ(at(visits, i), range.contains(i) ? 1 : 0);
  }
}

TEST(ThreadTeam, IsReusableAfterAnException) {
  ThreadTeam team(3);
  EXPECT_THROW(team.run([](int) { throw std::logic_error("all"); }), std::logic_error);
  std::atomic<int> done = 0;
  EXPECT_NO_THROW(team.run([&done](int) { ++done; }));
  EXPECT_EQ(done, 3);
}

}  // namespace lockstep::thread_team_test
