// The order of the passes through a stage.
#include "lockstep/distributed/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr std::array kSchedules{PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kGpipe};

std::string text_of(const std::vector<StageTask>& tasks) {
  std::string text;
  for (const StageTask& task : tasks)
    text += (task.forward ? "F" : "B") + std::to_string(task.micro_batch) + " ";
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

TEST(Schedules, TakeEachMicroBatchOnceAndHoldAsManyAsTheySay) {
  for (const PipelineSchedule schedule : kSchedules) {
    for (Index stages = 1; stages <= 5; ++stages) {
      for (Index stage = 0; stage < stages; ++stage) {
        for (Index count = 0; count <= 7; ++count) {
          Index forward = 0;
          Index backward = 0;
          Index most = 0;
          for (const StageTask& task : stage_tasks(schedule, stage, stages, count)) {
            EXPECT_EQ(task.micro_batch, task.forward ? forward++ : backward++);
            most = std::max(most, forward - backward);
          }
          EXPECT_EQ(forward, count);
          EXPECT_EQ(backward, count);
          EXPECT_EQ(most, micro_batches_alive(schedule, stage, stages, count));
        }
      }
    }
  }
  EXPECT_EQ(micro_batches_alive(PipelineSchedule::kOneForwardOneBackward, 1, 4, 16), 3);
}

// A node may have no worker of a stage.
TEST(Pipeline, FindsTheWorkersOfAStageOnEachNode) {
  using Nodes = std::vector<Index>;
  EXPECT_EQ(workers_on_nodes(Nodes{4, 2}, 2, 0), (Nodes{2, 1}));
  EXPECT_EQ(workers_on_nodes(Nodes{3, 3}, 2, 0), (Nodes{2, 1}));
  EXPECT_EQ(workers_on_nodes(Nodes{3, 3}, 2, 1), (Nodes{1, 2}));
  EXPECT_EQ(workers_on_nodes(Nodes{1, 1, 4}, 3, 2), (Nodes{2}));
  EXPECT_EQ(workers_on_nodes(Nodes{3, 2}, 1, 0), (Nodes{3, 2}));
  EXPECT_EQ(workers_on_nodes(Nodes{}, 2, 1), Nodes{});
}

TEST(Schedules, AreIdleAtTheirEnds) {
  EXPECT_DOUBLE_EQ(idle_share(1, 4), 0);
  EXPECT_DOUBLE_EQ(idle_share(2, 1), 0.5);
  EXPECT_DOUBLE_EQ(idle_share(4, 12), 0.2);
}

}  // namespace
}  // namespace lockstep
