// Every operation of the communicator, against what it is defined to do, also in parts of the ranks.
#include "lockstep/comm/communicator.h"

#include <latch>

#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/checked_communicator.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/math/fixed_tree.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/thread_ranks.h"

namespace lockstep::communicator_test {
namespace {

// A value that tells rank and place.
float value(int rank, Index i) {
  return static_cast<float>(rank * 1000 + i);
}

std::vector<float> values(int rank, Index count) {
  std::vector<float> result;
  for (Index i = 0; i < count; ++i) result.push_back(value(rank, i));
  return result;
}

constexpr Index kLengths[] = {0, 1, 4, 100, 1000};

// As it is, and where each call is compared over the ranks first.
void on_plain_and_checked(const std::function<void(Communicator&)>& body) {
  test::on_ranks([&](Communicator& comm) {
    body(comm);
    CheckedCommunicator checked(comm);
    body(checked);
  });
}

TEST(Communicator, BroadcastsFromEachRoot) {
  on_plain_and_checked([](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      for (const Index length : kLengths) {
        std::vector<float> data = values(comm.rank(), length);
        comm.broadcast(as_buffer(std::span(data)), root);
        EXPECT_EQ(data, values(root, length));
      }
    }
  });
}

TEST(Communicator, SumsOverAllRanks) {
  on_plain_and_checked([](Communicator& comm) {
    const Index n = comm.size();
    for (const Index length : kLengths) {
      std::vector<float> blocking = values(comm.rank(), length);
      std::vector<float> started = blocking;
      comm.all_reduce_sum(as_buffer(std::span(blocking)));
      comm.start_all_reduce_sum(as_buffer(std::span(started)))->wait();
      for (Index i = 0; i < length; ++i) {
        const auto expected = static_cast<float>(1000 * n * (n - 1) / 2 + n * i);
        EXPECT_EQ(at(blocking, i), expected);
      }
      EXPECT_EQ(started, blocking);
    }
  });
}

TEST(Communicator, SumsSeveralBuffersUnderWayAtOnce) {
  on_plain_and_checked([](Communicator& comm) {
    std::vector<Index> a{1};
    std::vector<double> b{0.5, 0.25};
    const auto first = comm.start_all_reduce_sum(as_buffer(std::span(a)));
    const auto second = comm.start_all_reduce_sum(as_buffer(std::span(b)));
    second->wait();
    while (!first->test()) {
    }
    EXPECT_EQ(a[0], comm.size());
    EXPECT_EQ(b[1], 0.25 * comm.size());
  });
}

TEST(Communicator, GathersEqualAndUnequalParts) {
  on_plain_and_checked([](Communicator& comm) {
    const std::vector<float> mine = values(comm.rank(), 3);
    std::vector<float> all(3 * static_cast<std::size_t>(comm.size()));
    comm.all_gather(as_buffer(std::span<const float>(mine)), as_buffer(std::span(all)));
    // Rank r fills r elements, so rank 0's part is empty.
    std::vector<Range> parts;
    for (Index rank = 0, begin = 0; rank < comm.size(); begin += rank++)
      parts.push_back({begin, begin + rank});
    std::vector<float> whole(static_cast<std::size_t>(parts.back().end));
    const Range part = at(parts, comm.rank());
    for (Index i = part.begin; i < part.end; ++i) at(whole, i) = value(comm.rank(), i);
    comm.start_all_gather(as_buffer(std::span(whole)), parts)->wait();
    for (int rank = 0; rank < comm.size(); ++rank) {
      EXPECT_EQ(all[static_cast<std::size_t>(3 * rank) + 2], value(rank, 2));
      for (Index i = at(parts, rank).begin; i < at(parts, rank).end; ++i)
        EXPECT_EQ(at(whole, i), value(rank, i));
    }
  });
}

TEST(Communicator, ExchangesSeveralMessagesBetweenEachPairInOrder) {
  on_plain_and_checked([](Communicator& comm) {
    const auto peers = static_cast<std::size_t>(comm.size());
    const std::vector<float> mine = values(comm.rank(), 5);
    std::vector<std::vector<float>> first(peers, std::vector<float>(2));
    std::vector<std::vector<float>> second(peers, std::vector<float>(3));
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == comm.rank()) continue;
      sends.push_back({peer, as_buffer(std::span<const float>(mine).first(2))});
      sends.push_back({peer, as_buffer(std::span<const float>(mine).subspan(2))});
      receives.push_back({peer, as_buffer(std::span(at(first, peer)))});
      receives.push_back({peer, as_buffer(std::span(at(second, peer)))});
    }
    // The same on another channel, started first by some and second by others, must not get in the way.
    const std::vector<float> other = values(comm.rank() + 100, 2);
    std::vector<std::vector<float>> third(peers, std::vector<float>(2));
    std::vector<Send> other_sends;
    std::vector<Receive> other_receives;
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == comm.rank()) continue;
      other_sends.push_back({peer, as_buffer(std::span<const float>(other))});
      other_receives.push_back({peer, as_buffer(std::span(at(third, peer)))});
    }
    const bool even = comm.rank() % 2 == 0;
    const auto early =
        comm.start_exchange(even ? 1 : 0, even ? other_sends : sends, even ? other_receives : receives);
    const auto late =
        comm.start_exchange(even ? 0 : 1, even ? sends : other_sends, even ? receives : other_receives);
    late->wait();
    early->wait();
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == comm.rank()) continue;
      EXPECT_EQ(at(first, peer)[1], value(peer, 1));
      EXPECT_EQ(at(second, peer)[2], value(peer, 4));
      EXPECT_EQ(at(third, peer)[1], value(peer + 100, 1));
    }
  });
}

TEST(Agree, EverybodyThrowsTheLowestFailingRanksError) {
  test::on_ranks([](Communicator& comm) {
    agree(comm, [] {});
    for (const int failing : {0, comm.size() - 1}) {
      try {
        agree(comm, [&] {
          if (comm.rank() == failing) throw DataError("no such file");
        });
        FAIL() << "nothing was thrown";
      } catch (const AgreedError& error) {
        EXPECT_EQ(error.exit_code(), kExitData);
        const std::string whose = comm.size() == 1 ? "" : "rank " + std::to_string(failing) + ": ";
        EXPECT_EQ(error.what(), whose + "no such file");
      }
    }
    try {
      agree(comm, [] { throw ConfigError("the same everywhere"); });
      FAIL() << "nothing was thrown";
    } catch (const AgreedError& error) {
      EXPECT_STREQ(error.what(), "the same everywhere");
    }
  });
}

TEST(Agree, TextsOfAnyLengthTravel) {
  test::on_ranks([](Communicator& comm) {
    const std::vector<std::string> all =
        gather_texts(comm, std::string(static_cast<std::size_t>(comm.rank()), 'x'));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(comm.size()));
    for (std::size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank], std::string(rank, 'x'));
    EXPECT_EQ(broadcast_text(comm, comm.rank() == 0 ? "hello" : "overwritten"), "hello");
    EXPECT_EQ(broadcast_text(comm, ""), "");
  });
}

TEST(Agree, TheTextOfTheLeastPlaceTravels) {
  test::on_ranks([](Communicator& comm) {
    const int last = comm.size() - 1;
    const std::string mine = fmt::format("of rank {}", comm.rank());
    EXPECT_EQ(text_of_first(comm, last - comm.rank(), mine), fmt::format("of rank {}", last));
    EXPECT_EQ(text_of_first(comm, comm.rank() == 0 ? 2 : 1, mine), last == 0 ? "of rank 0" : "of rank 1");
  });
}

TEST(OrderedSums, SameBitsOnAnyNumberOfRanks) {
  test::on_ranks([](Communicator& comm) {
    for (const Index leaves : {1, 2, 7, 8, 40}) {
      std::vector<double> all;
      for (Index leaf = 0; leaf < leaves; ++leaf)
        all.insert(all.end(), {1.0 / static_cast<double>(leaf + 3), 0.1});
      std::vector<double> first_column;
      for (Index leaf = 0; leaf < leaves; ++leaf) first_column.push_back(at(all, 2 * leaf));
      const Range local = split_evenly(leaves, comm.size(), comm.rank());
      const std::span<const double> mine = std::span<const double>(all).subspan(
          static_cast<std::size_t>(2 * local.begin), static_cast<std::size_t>(2 * local.size()));
      const std::vector<double> sums = ordered_sums(comm, mine, local, leaves, 2);
      EXPECT_EQ(sums[0], tree_sum(first_column));
      EXPECT_NEAR(sums[1], 0.1 * static_cast<double>(leaves), 1e-12);
    }
  });
}

// Every collective on rank 0, where the others add four numbers, or broadcast from another rank.
TEST(CheckedCommunicator, NamesTheCollectivesThatRanksAreAt) {
  test::on_ranks([](Communicator& comm) {
    if (comm.size() == 1) return;
    CheckedCommunicator checked(comm);
    checked.barrier();
    const auto window = checked.shared_window(8);
    std::vector<float> four(4);
    std::vector<float> all(4 * static_cast<std::size_t>(comm.size()));
    const Buffer numbers = as_buffer(std::span(four));
    const std::vector<std::pair<std::string, std::function<void()>>> calls{
        {"barrier of 0", [&] { checked.barrier(); }},
        {"broadcast of 4 float from rank 0", [&] { checked.broadcast(numbers, 0); }},
        {"rank 0 calls all_reduce_sum of 3 float",
         [&] { checked.all_reduce_sum(as_buffer(std::span(four).first(3))); }},
        {"start_all_reduce_sum of 4 float", [&] { checked.start_all_reduce_sum(numbers); }},
        {"rank 0 calls all_gather of 4 float",
         [&] { checked.all_gather(as_buffer(std::span<const float>(four)), as_buffer(std::span(all))); }},
        {"start_all_gather of", [&] { checked.start_all_gather(as_buffer(std::span(all)), {}); }},
        {"split of 0", [&] { checked.split(0, 0); }},
        {"split_by_node of 2", [&] { checked.split_by_node(2); }},
        {"shared_window of 0", [&] { checked.shared_window(8); }},
        {"SharedWindow::fence", [&] { window->fence(); }}};
    for (const auto& [name, call] : calls) {
      for (const bool adds : {true, false}) {
        if (!adds && !name.starts_with("broadcast")) continue;
        const auto others = [&] { adds ? checked.all_reduce_sum(numbers) : checked.broadcast(numbers, 1); };
        test::expect_parts(test::error_text<CommError>([&] { comm.rank() == 0 ? call() : others(); }),
                           {name});
      }
    }
  });
}

// The sum over a communicator's ranks of one number.
Index sum(Communicator& comm, Index mine) {
  comm.all_reduce_sum(as_buffer(std::span(&mine, 1)));
  return mine;
}

TEST(Communicator, SplitsByColorInTheOrderAskedFor) {
  on_plain_and_checked([](Communicator& comm) {
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
  on_plain_and_checked([](Communicator& comm) {
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
  on_plain_and_checked([](Communicator& comm) {
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
}  // namespace lockstep::communicator_test
