// The order of the passes through a stage.
#include "lockstep/distributed/pipeline.h"
#include "support/common.h"

namespace lockstep::pipeline_test {

PipelineSchedule interleaved(Index chunks) {
  return {.order = PipelineSchedule::Order::kInterleaved, .chunks = chunks};
}

const std::vector<PipelineSchedule> kSchedules{PipelineSchedule::kOneForwardOneBackward,
                                               PipelineSchedule::kGpipe, interleaved(2), interleaved(3),
                                               interleaved(5)};

// "F0.1": micro-batch 0 forward through chunk 1.
std::string text_of(const std::vector<StageTask>& tasks, bool with_chunks = false) {
  std::string text;
  for (const StageTask& task : tasks) {
    text += (task.forward ? "F" : "B") + std::to_string(task.micro_batch);
    if (with_chunks) text += "." + std::to_string(task.chunk);
    text += " ";
  }
  return text;
}

TEST(Schedules, AsTheyAreDrawn) {
  const auto tasks = [](PipelineSchedule schedule, Index stage) {
    return text_of(stage_tasks(schedule, stage, 3, 4));
  };
  EXPECT_EQ(tasks(PipelineSchedule::kOneForwardOneBackward, 0), "F0 F1 F2 B0 F3 B1 B2 B3 ");
  EXPECT_EQ(tasks(PipelineSchedule::kOneForwardOneBackward, 1), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(tasks(PipelineSchedule::kOneForwardOneBackward, 2), "F0 B0 F1 B1 F2 B2 F3 B3 ");
  EXPECT_EQ(tasks(PipelineSchedule::kGpipe, 1), "F0 F1 F2 F3 B0 B1 B2 B3 ");
}

// Two stages of two chunks; of three micro-batches the third is in the one round, too.
TEST(Schedules, TakeChunksInRounds) {
  const auto tasks = [](Index stage, Index count) {
    return text_of(stage_tasks(interleaved(2), stage, 2, count), true);
  };
  EXPECT_EQ(tasks(0, 4), "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0 ");
  EXPECT_EQ(tasks(1, 4), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0 ");
  EXPECT_EQ(tasks(1, 3), "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 B0.0 B1.0 B2.0 ");
}

TEST(Schedules, TakeEachMicroBatchOnceAndHoldAsManyAsTheySay) {
  for (const PipelineSchedule& schedule : kSchedules)
    for (Index stages = 1; stages <= 5; ++stages)
      for (Index stage = 0; stage < stages; ++stage)
        for (Index count = 0; count <= 7; ++count) {
          const std::vector<Index> none(static_cast<std::size_t>(schedule.chunks), 0);
          std::vector<Index> forward = none, backward = none, most = none;
          for (const StageTask& task : stage_tasks(schedule, stage, stages, count)) {
            Index& taken = at(task.forward ? forward : backward, task.chunk);
            EXPECT_EQ(task.micro_batch, taken++);
            Index& alive = at(most, task.chunk);
            alive = std::max(alive, at(forward, task.chunk) - at(backward, task.chunk));
          }
          const std::vector<Index> all(none.size(), count);
          EXPECT_EQ(forward, all);
          EXPECT_EQ(backward, all);
          EXPECT_EQ(most, chunks_alive(schedule, stage, stages, count));
        }
  EXPECT_EQ(micro_batches_alive(PipelineSchedule::kOneForwardOneBackward, 1, 4, 16), 3);
  EXPECT_EQ(micro_batches_alive(interleaved(2), 0, 2, 8), 6);
  EXPECT_EQ(micro_batches_alive(interleaved(2), 1, 2, 8), 4);
}

// All ranks of a group. A task receives once its turn has come and the memory for it is free, which is when
// what was sent from it has been received: a message needs no other memory. Each task takes a unit of time.
class Group {
 public:
  Group(const PipelineSchedule& schedule, Index stages, Index count, bool backward)
      : stages_(stages), chunks_(schedule.chunks), ranks_(static_cast<std::size_t>(stages)) {
    for (Index stage = 0; stage < stages; ++stage) {
      Rank& rank = at(ranks_, stage);
      rank.alive = chunks_alive(schedule, stage, stages, count);
      for (const StageTask& task : stage_tasks(schedule, stage, stages, count)) {
        if (!backward && !task.forward) continue;
        rank.places[key(task)] = std::ssize(rank.tasks);
        rank.tasks.push_back(task);
      }
      rank.ended.assign(rank.tasks.size(), 0);
    }
  }

  // The time that all take; 0 if they wait for each other, or a message meets another task's.
  Index run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (Index stage = 0; stage < stages_; ++stage)
        while (advance(stage)) moves = true;
    }
    Index time = 0;
    for (const Rank& rank : ranks_) {
      if (rank.done < std::ssize(rank.tasks)) return 0;
      time = std::max(time, rank.time);
    }
    return in_order_ ? time : 0;
  }

 private:
  using Key = std::array<Index, 3>;
  using Place = std::pair<Index, StageTask>;  // a rank, and a task there
  struct Rank {
    std::vector<StageTask> tasks;
    std::map<Key, Index> places;
    std::vector<Index> alive, ended;
    Index posted = 0;  // tasks that have begun to receive
    Index done = 0, time = 0;
    std::map<std::pair<Index, bool>, std::vector<Key>> sent;  // by rank that receives, and direction
  };
  static Key key(const StageTask& task) { return {task.micro_batch, task.forward ? 1 : 0, task.chunk}; }
  // The task that takes what this one sends, or the one that sends what it takes.
  std::optional<Place> neighbour(Index stage, StageTask task, bool ahead) const {
    const Index part = task.chunk * stages_ + stage + (task.forward == ahead ? 1 : -1);
    if (part < 0 || part >= stages_ * chunks_) return std::nullopt;
    task.chunk = part / stages_;
    return Place{part % stages_, task};
  }
  bool is_received(Index stage, const StageTask& task) const {
    const std::optional<Place> next = neighbour(stage, task, true);
    if (!next) return true;
    const Rank& rank = at(ranks_, next->first);
    return rank.posted > rank.places.at(key(next->second));
  }
  bool memory_is_free(Index stage, const StageTask& task) const {
    const Rank& rank = at(ranks_, stage);
    StageTask before = task;
    before.micro_batch -= at(rank.alive, task.chunk);
    if (!task.forward || before.micro_batch < 0) return true;
    if (!is_received(stage, before)) return false;
    before.forward = false;
    return !rank.places.contains(key(before)) || is_received(stage, before);
  }
  bool advance(Index stage) {
    Rank& rank = at(ranks_, stage);
    if (rank.done == std::ssize(rank.tasks)) return false;
    const StageTask task = at(rank.tasks, rank.done);
    if (rank.posted == rank.done) {
      if (!memory_is_free(stage, task)) return false;
      ++rank.posted;
    }
    Index begin = rank.time;
    if (const std::optional<Place> source = neighbour(stage, task, false)) {
      Rank& sender = at(ranks_, source->first);
      const Index place = sender.places.at(key(source->second));
      if (place >= sender.done) return false;
      begin = std::max(begin, at(sender.ended, place));
      std::vector<Key>& messages = sender.sent[{stage, task.forward}];
      in_order_ = in_order_ && messages.front() == key(source->second);
      messages.erase(messages.begin());
    }
    rank.time = begin + 1;
    at(rank.ended, rank.done++) = rank.time;
    if (const std::optional<Place> next = neighbour(stage, task, true))
      rank.sent[{next->first, task.forward}].push_back(key(task));
    return true;
  }
  Index stages_, chunks_;
  std::vector<Rank> ranks_;
  bool in_order_ = true;
};

TEST(Schedules, NeverWaitInACircleAndAreIdleAsLongAsTheySay) {
  for (const PipelineSchedule& schedule : kSchedules)
    for (Index stages = 2; stages <= 9; ++stages)
      for (Index count = 1; count <= 33; ++count) {
        SCOPED_TRACE(to_string(schedule) + ", " + std::to_string(stages) + " stages, " +
                     std::to_string(count) + " micro-batches");
        const Index time = Group(schedule, stages, count, true).run();
        ASSERT_GT(time, 0);
        const auto work = static_cast<double>(2 * schedule.chunks * count);
        EXPECT_NEAR(idle_share(stages, count, schedule.chunks), 1 - work / static_cast<double>(time), 1e-12);
        EXPECT_GT(Group(schedule, stages, count, false).run(), 0) << "forward alone";
      }
}

TEST(Schedules, AreReadAsTheyAreWritten) {
  for (const PipelineSchedule& schedule : kSchedules)
    EXPECT_EQ(parse_schedule(to_string(schedule)), schedule);
  EXPECT_EQ(parse_schedule("interleaved(2)"), interleaved(2));
  for (const char* text : {"", "pipedream", "interleaved", "interleaved()", "interleaved(1)",
                           "interleaved(0)", "interleaved(-2)", "interleaved(2", "interleaved(2)x",
                           "interleaved(2.5)", "interleaved(99999999999999999999)"})
    EXPECT_EQ(parse_schedule(text), std::nullopt) << text;
}

using Nodes = std::vector<Index>;

// A node may have no worker of a stage.
TEST(StageGrid, FindsTheWorkersOfAStageOnEachNode) {
  const auto workers = [](const Nodes& nodes, Index stages, Index stage, StagePlacement placement) {
    return StageGrid(std::accumulate(nodes.begin(), nodes.end(), Index{0}), stages, placement)
        .workers_on_nodes(nodes, stage);
  };
  constexpr auto kNeighbours = StagePlacement::kNeighbours;
  EXPECT_EQ(workers({4, 2}, 2, 0, kNeighbours), (Nodes{2, 1}));
  EXPECT_EQ(workers({3, 3}, 2, 0, kNeighbours), (Nodes{2, 1}));
  EXPECT_EQ(workers({3, 3}, 2, 1, kNeighbours), (Nodes{1, 2}));
  EXPECT_EQ(workers({1, 1, 4}, 3, 2, kNeighbours), (Nodes{2}));
  EXPECT_EQ(workers({3, 2}, 1, 0, kNeighbours), (Nodes{3, 2}));
  EXPECT_EQ(workers({}, 2, 1, kNeighbours), Nodes{});
  EXPECT_EQ(workers({4, 2}, 2, 0, StagePlacement::kSpread), (Nodes{3}));
  EXPECT_EQ(workers({4, 2}, 2, 1, StagePlacement::kSpread), (Nodes{1, 2}));
}

TEST(StageGrid, PutsGroupsOrStagesOnNeighbours) {
  const StageGrid neighbours(6, 3, StagePlacement::kNeighbours), spread(6, 3, StagePlacement::kSpread);
  std::vector<Index> stages, spread_stages;
  for (Index rank = 0; rank < 6; ++rank) {
    stages.push_back(neighbours.stage_of(rank));
    spread_stages.push_back(spread.stage_of(rank));
    for (const StageGrid& grid : {neighbours, spread})
      EXPECT_EQ(grid.rank_of(grid.group_of(rank), grid.stage_of(rank)), rank);
  }
  EXPECT_EQ(stages, (std::vector<Index>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(spread_stages, (std::vector<Index>{0, 0, 1, 1, 2, 2}));
}

TEST(Schedules, AreIdleAtTheirEnds) {
  EXPECT_DOUBLE_EQ(idle_share(1, 4), 0);
  EXPECT_DOUBLE_EQ(idle_share(2, 1), 0.5);
  EXPECT_DOUBLE_EQ(idle_share(4, 12), 0.2);
  EXPECT_DOUBLE_EQ(idle_share(4, 12, 3), 3.0 / 39);
}

}  // namespace lockstep::pipeline_test
