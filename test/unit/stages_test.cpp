// The stages of the exchange, by simulation: any number of ranks, any count, without a communicator.
#include "distributed/exchange/reducers.h"
#include "support/common.h"

namespace lockstep::stages_test {

struct Named {
  std::string name;
  MakeStages make;
};

std::vector<Named> all_stages() {
  return {{"ring", ring_stages}, {"rabenseifner", rabenseifner_stages}};
}

// Ranks that go through their stages in turn; each sends when a stage begins, and waits until it received.
class Simulation {
 public:
  Simulation(const MakeStages& make, int ranks, Index count) : ranks_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      Rank& mine = of(rank);
      mine.stages = make(rank, ranks, count);
      for (Index i = 0; i < count; ++i) mine.values.push_back(value(rank, i));
    }
  }

  static Scalar value(int rank, Index i) {
    return static_cast<Scalar>(std::sin(rank * 31.0 + 0.7 * static_cast<double>(i)));
  }

  // False if some rank waits for what never comes.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < std::ssize(ranks_); ++rank) moved = step(rank) || moved;
    }
    for (const Rank& rank : ranks_) {
      if (rank.next < rank.stages.size()) return false;
    }
    for (const auto& [path, messages] : messages_) {
      if (!messages.empty()) return false;
    }
    return true;
  }
  const std::vector<Scalar>& values(int rank) { return of(rank).values; }

 private:
  struct Rank {
    std::vector<Stage> stages;
    std::vector<Scalar> values;
    std::size_t next = 0;
    bool sent = false;
  };
  Rank& of(int rank) { return at(ranks_, rank); }
  bool step(int rank) {
    Rank& mine = of(rank);
    if (mine.next == mine.stages.size()) return false;
    const Stage& stage = mine.stages[mine.next];
    if (stage.send && !mine.sent) {
      const auto begin = mine.values.begin() + stage.send->range.begin;
      messages_[{rank, stage.send->peer}].emplace_back(begin, begin + stage.send->range.size());
    }
    mine.sent = true;
    if (stage.receive && !receive(mine, stage, messages_[{stage.receive->peer, rank}])) return false;
    mine.sent = false;
    ++mine.next;
    return true;
  }

  static bool receive(Rank& mine, const Stage& stage, std::deque<std::vector<Scalar>>& from) {
    if (from.empty()) return false;
    const Range range = stage.receive->range;
    EXPECT_EQ(std::ssize(from.front()), range.size());
    for (Index i = 0; i < range.size(); ++i) {
      Scalar& to = at(mine.values, range.begin + i);
      const Scalar what = at(from.front(), i);
      to = stage.write == Write::kAdd ? to + what : what;
    }
    from.pop_front();
    return true;
  }
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<std::vector<Scalar>>> messages_;
};

TEST(Stages, EveryRankEndsWithTheSameSums) {
  for (const Named& stages : all_stages())
    for (int ranks = 1; ranks <= 17; ++ranks)
      for (const Index count : {0, 1, 2, 5, 16, 17, 33, 100, 555, 1025}) {
        SCOPED_TRACE(stages.name + ": " + std::to_string(count) + " numbers on " + std::to_string(ranks));
        Simulation simulation(stages.make, ranks, count);
        ASSERT_TRUE(simulation.run());
        for (Index i = 0; i < count; ++i) {
          double sum = 0;
          for (int rank = 0; rank < ranks; ++rank) sum += static_cast<double>(Simulation::value(rank, i));
          ASSERT_NEAR(simulation.values(0)[static_cast<std::size_t>(i)], sum, 1e-5) << i;
        }
        for (int rank = 1; rank < ranks; ++rank) ASSERT_EQ(simulation.values(rank), simulation.values(0));
      }
}

TEST(Stages, NobodyTalksToHimselfOrSendsWhatHeIsReceiving) {
  for (const Named& stages : all_stages())
    for (int ranks = 1; ranks <= 17; ++ranks)
      for (int rank = 0; rank < ranks; ++rank)
        for (const Stage& stage : stages.make(rank, ranks, 1000)) {
          ASSERT_TRUE(stage.send || stage.receive);
          for (const auto& transfer : {stage.send, stage.receive}) {
            if (!transfer) continue;
            EXPECT_NE(transfer->peer, rank);
            EXPECT_TRUE(0 <= transfer->peer && transfer->peer < ranks);
            EXPECT_TRUE((Range{0, 1000}).contains(transfer->range));
          }
          if (stage.send && stage.receive) {
            EXPECT_TRUE(intersect(stage.send->range, stage.receive->range).empty());
          }
        }
}

TEST(Stages, TheySendNoMoreThanTheyPromise) {
  constexpr Index kCount = 1 << 20;
  for (int ranks = 2; ranks <= 17; ++ranks) {
    const bool power = (ranks & (ranks - 1)) == 0;
    const double fewest = 2.0 * (ranks - 1) / ranks * kCount;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_NEAR(static_cast<double>(numbers_sent(ring_stages(rank, ranks, kCount))), fewest, 500);
      EXPECT_EQ(std::ssize(ring_stages(rank, ranks, kCount)), 2 * (ranks - 1));
      const std::vector<Stage> stages = rabenseifner_stages(rank, ranks, kCount);
      if (power) {
        EXPECT_NEAR(static_cast<double>(numbers_sent(stages)), fewest, 500);
        EXPECT_EQ(std::ssize(stages), 2 * std::lround(std::log2(ranks)));
      } else {
        EXPECT_LE(numbers_sent(stages), 7 * kCount / 2);
      }
      EXPECT_LE(max_added(stages), kCount / 2);
    }
  }
}

}  // namespace lockstep::stages_test
