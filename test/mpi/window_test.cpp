// Memory that the ranks of a node share: what it holds, who sees what, and that it goes away.
#include <latch>

#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/communicator.h"
#include "support/ranks.h"
#include "support/thread_ranks.h"

namespace lockstep::window_test {
namespace {

// Uneven, not multiples of 64; every third rank asks for nothing.
Index bytes_of(int rank) {
  return rank % 3 == 0 ? 0 : 5000 * rank + 4;
}

std::byte pattern(int rank, Index round) {
  return static_cast<std::byte>(1 + (rank + 7 * round) % 250);
}

bool all_are(std::span<const std::byte> part, std::byte value) {
  return std::ranges::all_of(part, [=](std::byte one) { return one == value; });
}

TEST(SharedWindow, StartsZeroedOnBordersWithTheSizesAskedFor) {
  test::on_ranks([](Communicator& comm) {
    // Again and again: a window may get the memory of an earlier one.
    for (int i = 0; i < 20; ++i) {
      const auto window = comm.shared_window(bytes_of(comm.rank() + 1));
      for (int rank = 0; rank < comm.size(); ++rank) {
        const std::span<const std::byte> part = window->part(rank);
        EXPECT_EQ(std::ssize(part), bytes_of(rank + 1));
        EXPECT_TRUE(all_are(part, std::byte{0})) << "part " << rank;
        if (!part.empty()) {
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part.data()) % kAlignmentBytes, 0u);
        }
      }
      window->fence();
      std::ranges::fill(window->part(comm.rank()), std::byte{255});
    }
  });
}

TEST(SharedWindow, EveryRankReadsWhatOthersWrote) {
  test::on_ranks([](Communicator& comm) {
    const auto window = comm.shared_window(bytes_of(comm.rank()));
    const int next = (comm.rank() + 1) % comm.size();
    for (Index round = 0; round < 100; ++round) {
      // In turn into one's own part and into that of the next rank.
      const int written = round % 2 == 0 ? comm.rank() : next;
      std::ranges::fill(window->part(written), pattern(written, round));
      window->fence();
      for (int rank = 0; rank < comm.size(); ++rank)
        EXPECT_TRUE(all_are(window->part(rank), pattern(rank, round))) << "part " << rank << ", " << round;
      window->fence();
    }
  });
}

TEST(SharedWindow, EachPretendedNodeHasItsOwn) {
  test::on_ranks([](Communicator& comm) {
    const auto node = comm.split_by_node(2);
    const auto window = node->shared_window(sizeof(Index));
    const Index mine = comm.rank();
    std::memcpy(window->part(node->rank()).data(), &mine, sizeof(mine));
    window->fence();
    for (int rank = 0; rank < node->size(); ++rank) {
      Index theirs = 0;
      std::memcpy(&theirs, window->part(rank).data(), sizeof(theirs));
      EXPECT_EQ(theirs, comm.rank() / 2 * 2 + rank);
    }
  });
}

// Pieces of this process's memory that belong to files of shared memory.
Index mapped_files() {
  std::ifstream maps("/proc/self/maps");
  Index found = 0;
  for (std::string line; std::getline(maps, line);) found += line.find("/dev/shm") != std::string::npos;
  return found;
}

TEST(SharedWindow, GivesItsMemoryBack) {
  test::on_ranks([](Communicator& comm) {
    comm.shared_window(1 << 16)->fence();
    comm.barrier();
    const Index before = mapped_files();
    for (int i = 0; i < 100; ++i) comm.shared_window(1 << 16)->fence();
    comm.barrier();
    EXPECT_EQ(mapped_files(), before);
  });
}

TEST(SharedWindow, SaysOnAllRanksThatItDoesNotFit) {
  if (!test::under_mpi()) GTEST_SKIP() << "threads share ordinary memory";
  test::on_ranks([](Communicator& comm) {
    if (comm.size() == 1) return;  // ordinary memory
    const Index bytes = comm.rank() == comm.size() - 1 ? Index{1} << 50 : 0;
    try {
      comm.shared_window(bytes);
      ADD_FAILURE() << "a window of a pebibyte was made";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.exit_code(), kExitConfig);
      EXPECT_NE(std::string(error.what()).find("a shared window of 1.0 PiB is larger than a rank can have"),
                std::string::npos)
          << error.what();
    }
    comm.shared_window(100)->fence();
  });
}

TEST(SharedWindow, OfARankAloneIsOutOfMemoryLikeAnyOther) {
  if (!test::under_mpi()) GTEST_SKIP() << "threads share ordinary memory";
  test::on_ranks([](Communicator& comm) {
    if (comm.size() > 1) return;
    try {
      comm.shared_window(Index{1} << 50);
      ADD_FAILURE() << "a window of a pebibyte was made";
    } catch (const std::bad_alloc& error) {
      EXPECT_STREQ(error.what(), "out of memory: 1.0 PiB in one piece cannot be had");
    }
  });
}

TEST(SharedWindow, AnExceptionPassesItWithoutWaitingForOthers) {
  test::on_ranks([](Communicator& comm) {
    for (int thrower = 0; thrower < comm.size(); ++thrower) {
      auto window = comm.shared_window(100);
      try {
        const std::unique_ptr<SharedWindow> held = std::move(window);
        held->fence();
        // The others hold theirs until after the barrier, to which the thrower must come in time.
        if (comm.rank() != thrower) comm.barrier();
        throw DataError("no such file");
      } catch (const DataError&) {
        if (comm.rank() == thrower) comm.barrier();
      }
    }
  });
}

TEST(SharedWindow, ARankThatThrowsReleasesThoseAtAFence) {
  std::latch waiting(4);
  std::atomic<int> released = 0;
  const auto body = [&](Communicator& comm) {
    const auto node = comm.split_by_node(3);
    const auto window = node->shared_window(8);
    if (comm.rank() == 2) {
      waiting.wait();
      throw DataError("no such file");
    }
    waiting.count_down();
    try {
      window->fence();
      comm.barrier();
    } catch (const CommError&) {
      ++released;
      throw;
    }
  };
  EXPECT_THROW(run_thread_ranks(5, body), DataError);
  EXPECT_EQ(released, 4);
}

}  // namespace
}  // namespace lockstep::window_test
