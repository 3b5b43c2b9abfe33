// Communicators of some of the ranks: who is in them, and that they keep out of each other's way.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/communicator.h"
#include "support/ranks.h"
#include "support/thread_ranks.h"

namespace lockstep::split_test {
namespace {

// The sum over a communicator's ranks of one number.
Index sum(Communicator& comm, Index mine) {
  comm.all_reduce_sum(as_buffer(std::span(&mine, 1)));
  return mine;
}

TEST(Communicator, SplitsByColorInTheOrderAskedFor) {
  test::on_ranks([](Communicator& comm) {
    const int parity = comm.rank() % 2;
    const auto part = comm.split(parity, -comm.rank());
    std::vector<Index> ranks(static_cast<std::size_t>(part->size()));
    const Index mine = comm.rank();
    part->all_gather(as_buffer(std::span(&mine, 1)), as_buffer(std::span(ranks)));
    std::vector<Index> expected;
    for (Index rank = comm.size() - 1; rank >= 0; --rank)
      if (rank % 2 == parity) expected.push_back(rank);
    EXPECT_EQ(ranks, expected);
    EXPECT_EQ(at(ranks, part->rank()), mine);
    // Equal orders: by rank.
    const auto same = comm.split(0, 7);
    EXPECT_EQ(same->rank(), comm.rank());
    EXPECT_EQ(same->size(), comm.size());
  });
}

TEST(Communicator, PartsAndTheWholeCommunicateAtOnce) {
  test::on_ranks([](Communicator& comm) {
    const auto part = comm.split(comm.rank() % 2, comm.rank());
    const auto part_of_part = comm.split(comm.rank() % 2, 0)->split(part->rank() / 2, 0);
    const Index n = comm.size();
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    for (Index round = 0; round < 20; ++round) {
      Index whole = round;
      Index nested = 1;
      const auto of_whole = comm.start_all_reduce_sum(as_buffer(std::span(&whole, 1)));
      const auto of_nested = part_of_part->start_all_reduce_sum(as_buffer(std::span(&nested, 1)));
      // Messages of the same channel, in the whole and in a part of all ranks.
      const auto all = comm.split(0, 0);
      const Index sent[] = {comm.rank(), 100 + comm.rank()};
      Index received[2] = {previous, 100 + previous};
      std::unique_ptr<Request> exchanges[2];
      for (const std::size_t which : {std::size_t{1}, std::size_t{0}}) {
        if (n == 1) continue;
        const Send send{next, as_buffer(std::span<const Index>(&sent[which], 1))};
        const Receive receive{previous, as_buffer(std::span(&received[which], 1))};
        Communicator& where = which == 0 ? comm : *all;
        exchanges[which] = where.start_exchange(0, std::span(&send, 1), std::span(&receive, 1));
      }
      EXPECT_EQ(sum(*part, comm.rank() % 2), part->size() * (comm.rank() % 2));
      for (const auto& exchange : exchanges)
        if (exchange) exchange->wait();
      EXPECT_EQ(received[0], previous);
      EXPECT_EQ(received[1], 100 + previous);
      of_nested->wait();
      EXPECT_EQ(nested, part_of_part->size());
      of_whole->wait();
      EXPECT_EQ(whole, n * round);
    }
  });
}

TEST(Communicator, PretendsThatNodesAreSmall) {
  test::on_ranks([](Communicator& comm) {
    EXPECT_EQ(comm.split_by_node(0)->size(), comm.size());
    for (const Index ranks_per_node : {1, 2, 3}) {
      const auto node = comm.split_by_node(ranks_per_node);
      const Index first = comm.rank() / ranks_per_node * ranks_per_node;
      EXPECT_EQ(node->rank(), comm.rank() - first);
      EXPECT_EQ(node->size(), std::min(ranks_per_node, comm.size() - first));
      EXPECT_EQ(sum(*node, first), first * node->size());
    }
  });
}

TEST(ThreadRanks, OneThatThrowsReleasesThoseThatWaitInParts) {
  std::latch waiting(7);
  std::atomic<int> released = 0;
  const auto body = [&](Communicator& comm) {
    const auto part = comm.split(comm.rank() % 2, 0);
    const auto part_of_part = part->split(part->rank() / 2, 0);
    if (comm.rank() == 7) {
      waiting.wait();
      throw DataError("no such file");
    }
    waiting.count_down();
    try {
      // Rank 7 is missing everywhere: rank 5 waits in the part of the part, 1 and 3 in the part.
      if (comm.rank() == 5) part_of_part->barrier();
      if (comm.rank() % 2 == 1) part->barrier();
      comm.barrier();
    } catch (const CommError&) {
      ++released;
      throw;
    }
  };
  EXPECT_THROW(run_thread_ranks(8, body), DataError);
  EXPECT_EQ(released, 7);
}

TEST(CheckedCommunicator, ChecksPartsToo) {
  test::on_ranks([](Communicator& comm) {
    CheckedCommunicator checked(comm);
    const auto part = checked.split(comm.rank() / 2, 0);
    if (part->size() == 1) return;
    std::vector<float> data(part->rank() == 0 ? 5 : 4);
    EXPECT_THROW(part->all_reduce_sum(as_buffer(std::span(data))), CommError);
  });
}

}  // namespace
}  // namespace lockstep::split_test
