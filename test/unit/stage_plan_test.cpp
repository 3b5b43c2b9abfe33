// The plan of a model that is divided among ranks.
#include "lockstep/base/errors.h"
#include "lockstep/nn/stages.h"
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/plan/run_plan.h"
#include "support/error_text.h"
#include "support/planned_run.h"

namespace lockstep::test::stage_plan_test {

constexpr const char* kDeep = "dense(64) relu dense(64) relu dense(64) relu dense(64) relu dense(10)";

RunPlanRequest request_of(const Given& setup, std::span<const std::unique_ptr<Model>> stages, Index world,
                          std::vector<OptimizerMemory> optimizers) {
  return {.train = setup.train,
          .data = setup.data,
          .distribute = setup.distribute,
          .schedule = setup.schedule,
          .model = setup.model,
          .stages = stages,
          .rows = setup.rows,
          .record_bytes = 104,
          .optimizer = setup.optimizer,
          .stage_optimizers = std::move(optimizers),
          .world = world};
}

RunPlan plan_of(Index stages, Index world,
                PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward,
                const std::string& strategy = "allreduce", const std::vector<Index>& node_sizes = {},
                const std::string& layers = kDeep, const std::string& batch_norm = "local") {
  const ModelOptions options{.layers = layers, .batch_norm = batch_norm};
  Given setup = typical(layers);
  setup.model = Model(options, setup.model.input());
  setup.distribute.stages = stages;
  setup.distribute.strategy = strategy;
  setup.distribute.schedule = schedule;
  std::vector<std::unique_ptr<Model>> models;
  if (stages > 1) {
    const std::vector<Range> parts = divide_model(setup.model, stages, setup.distribute.cut, schedule.chunks);
    for (const std::vector<Range>& chunks : chunks_of_stages(parts, stages))
      models.push_back(std::make_unique<Model>(options, setup.model, std::span(chunks)));
  }
  RunPlanRequest request =
      request_of(setup, models, world, std::vector<OptimizerMemory>(models.size(), OptimizerMemory(1)));
  request.target_columns = 1;
  request.saves = true;
  request.node_sizes = node_sizes;
  return make_run_plan(request);
}

TEST(StagePlan, DividesRanksModelAndMemory) {
  const RunPlan whole = plan_of(1, 2), plan = plan_of(2, 4);
  EXPECT_EQ(plan.ranks(), 4);
  EXPECT_EQ(plan.dist.world, 2) << "two groups";
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(plan.stages[0].parameters + plan.stages[1].parameters, whole.parameters);
  EXPECT_EQ(plan.stages[0].flops + plan.stages[1].flops, whole.flops);
  EXPECT_EQ(plan.micro_batches, 32) << "64 replicas of two groups";
  EXPECT_EQ(plan.stages[0].received_bytes, 0);
  EXPECT_EQ(plan.stages[1].received_bytes, 64 * Index{sizeof(Scalar)});
  for (const StagePlan& stage : plan.stages) {
    EXPECT_LT(stage.memory.weights, whole.memory.weights);
    EXPECT_LT(stage.memory.optimizer, whole.memory.optimizer);
    EXPECT_LT(stage.memory.gradients, whole.memory.gradients);
    EXPECT_EQ(stage.dist.hosted, plan.dist.hosted);
  }
  EXPECT_EQ(plan.steps, whole.steps);
  EXPECT_EQ(plan.model_file_bytes, whole.model_file_bytes);
}

// The first stage has records of 104 bytes and samples of 100 features and a target; the last has targets.
TEST(StagePlan, CountsRecordsWhereTheyAreNeeded) {
  const RunPlan whole = plan_of(1, 1), plan = plan_of(3, 3);
  ASSERT_EQ(plan.stages.size(), 3U);
  EXPECT_EQ(plan.stages[0].memory.data, whole.memory.data);
  EXPECT_EQ(plan.stages[1].memory.data, 0);
  EXPECT_GT(plan.stages[2].memory.data, 0);
  EXPECT_LT(20 * plan.stages[2].memory.data, whole.memory.data);
  Index largest = 0;
  for (const StagePlan& stage : plan.stages) largest = std::max(largest, stage.memory.total());
  EXPECT_EQ(plan.memory.total(), largest);
  EXPECT_GT(plan.memory.total(), plan.stages[1].memory.total());
}

// The first rank writes the model in pieces, and all copy their shares of it for a checkpoint.
TEST(StagePlan, CountsAPieceOfTheModelAndNotAllOfIt) {
  const ModelOptions wide{.layers = "dense(8192) relu dense(8192) relu dense(10)"};
  Given setup = typical(wide.layers);
  const auto memory_of = [&](bool saves) {
    setup.distribute.stages = 2;
    std::vector<std::unique_ptr<Model>> models;
    for (const Range ops : divide_model(setup.model, 2, std::vector<std::string>{"2"}))
      models.push_back(std::make_unique<Model>(wide, setup.model, ops));
    setup.optimizer = 0;
    RunPlanRequest request = request_of(setup, models, 2, {0, 0});
    request.saves = saves;
    return make_run_plan(request).stages;
  };
  constexpr Index kPiece = Index{16} << 20;
  const std::vector<StagePlan> plain = memory_of(false);
  EXPECT_EQ(plain[0].memory.checkpoint, kPiece);
  EXPECT_EQ(plain[1].memory.checkpoint, 0);
  const std::vector<StagePlan> saving = memory_of(true);
  const Index file = setup.model.stored_layout().count() * Index{sizeof(Scalar)};
  EXPECT_GT(file, 3 * kPiece);
  EXPECT_NEAR(static_cast<double>(saving[1].memory.checkpoint), static_cast<double>(file) / 2,
              Index{4} << 20);
  EXPECT_EQ(saving[0].memory.checkpoint, saving[1].memory.checkpoint + kPiece);
}

// Half of the ranks of a node run each stage.
TEST(StagePlan, CountsTheWorkersOfAStageOnEachNode) {
  constexpr auto kSchedule = PipelineSchedule::kOneForwardOneBackward;
  const RunPlan one = plan_of(2, 8, kSchedule, "central_storage", {8});
  const RunPlan two = plan_of(2, 8, kSchedule, "central_storage", {4, 4});
  ASSERT_EQ(two.stages.size(), 2U);
  for (const StagePlan& stage : two.stages) EXPECT_EQ(stage.dist.world, 4);
  EXPECT_EQ(one.sent_bytes, 0) << "all are on one node";
  EXPECT_GT(two.sent_bytes, 0);
}

TEST(StagePlan, CountsTheMicroBatchesInMemory) {
  const RunPlan soon = plan_of(2, 2);
  EXPECT_EQ(soon.stages[0].alive, 2);
  EXPECT_EQ(soon.stages[1].alive, 1);
  const RunPlan late = plan_of(2, 2, PipelineSchedule::kGpipe);
  EXPECT_EQ(late.stages[0].alive, 64);
  EXPECT_EQ(late.stages[0].memory.activations, 32 * soon.stages[0].memory.activations);
}

TEST(StagePlan, CountsChunks) {
  const PipelineSchedule interleaved{.order = PipelineSchedule::Order::kInterleaved, .chunks = 2};
  const RunPlan plan = plan_of(2, 2, interleaved), simple = plan_of(4, 4);
  ASSERT_EQ(plan.stages.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(plan.stages[i].parameters, simple.stages[i].parameters + simple.stages[2 + i].parameters);
    EXPECT_EQ(plan.stages[i].layers, simple.stages[i].layers + ", " + simple.stages[2 + i].layers);
  }
  EXPECT_EQ(plan.stages[0].alive, 6);
  EXPECT_EQ(plan.stages[1].alive, 4);
  EXPECT_DOUBLE_EQ(plan.idle_share(64), 1.0 / 129);
  expect_parts(plan_table(std::vector{plan}),
               {"by (S - 1) / (v m + S - 1) with v = 2 chunks of the model on each rank"});
}

// The last stage has a copy of 64 x 100 weights, and sends gradients of two micro-batches at a time.
TEST(StagePlan, CountsWeightsThatStagesShare) {
  constexpr auto kSchedule = PipelineSchedule::kOneForwardOneBackward;
  const auto plan = [&](const std::string& last) {
    return plan_of(2, 2, kSchedule, "allreduce", {}, "dense(64) relu dense(100) relu " + last);
  };
  const RunPlan tied = plan("dense(64, tie=0)"), free = plan("dense(64)");
  constexpr Index kWeight = 64 * 100 * Index{sizeof(Scalar)};
  ASSERT_EQ(tied.stages.size(), 2U);
  EXPECT_EQ(tied.stages[0].tied.lent, kWeight);
  EXPECT_EQ(tied.stages[0].tied.collected, kWeight);
  EXPECT_EQ(tied.stages[0].tied.kept_gradients, kWeight);
  EXPECT_EQ(tied.stages[1].tied.borrowed, kWeight);
  EXPECT_EQ(std::tuple(tied.stages[1].tied.returned, tied.stages[1].tied.kept_gradients, tied.parameters),
            std::tuple(kWeight, 2 * kWeight, free.parameters - 64 * 100));
  EXPECT_EQ(tied.stages[1].memory.weights, free.stages[1].memory.weights) << "a copy, or a weight of its own";
  expect_parts(plan_table(std::vector{tied}),
               {"Stage 1 shares weights of other stages: it receives 25.0 KiB of weights once a step, and "
                "sends 25.0 KiB of gradients back with each micro-batch."});
}

// Two weights of the first stage are shared by the last one, the second by two of its layers: each is sent
// once, and each layer has a gradient of its own.
TEST(StagePlan, CountsEachOfSeveralSharedWeightsOnce) {
  const RunPlan plan =
      plan_of(2, 2, PipelineSchedule::kOneForwardOneBackward, "allreduce", {},
              "dense(100) relu dense(100) tanh dense(100) relu dense(100) tanh dense(100, tie=0) relu "
              "dense(100, tie=2) tanh dense(100, tie=2) dense(10)");
  constexpr Index kWeight = 100 * 100 * Index{sizeof(Scalar)};
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(std::tuple(plan.stages[0].tied.lent, plan.stages[1].tied.borrowed, plan.stages[0].tied.collected),
            std::tuple(2 * kWeight, 2 * kWeight, 3 * kWeight));
  EXPECT_EQ(std::tuple(plan.stages[1].tied.returned, plan.stages[0].tied.borrowed, plan.stages[1].tied.lent),
            std::tuple(3 * kWeight, 0, 0));
  EXPECT_EQ(plan.stages[0].tied.kept_gradients, kWeight) << "one at a time";
  EXPECT_EQ(plan.stages[1].tied.kept_gradients, 2 * 3 * kWeight);
}

// The estimate for ops between two cuts, from plans of the ops before a cut and of those behind one, against
// the plan of three stages. Buffers that share memory are no sum, so that it may be off by a tenth.
void expect_estimates(const std::string& layers, const PipelineSchedule& schedule) {
  SCOPED_TRACE(layers + ", " + to_string(schedule));
  const ModelOptions options{.layers = layers};
  Given setup = typical(layers);
  setup.distribute.stages = 3;
  setup.distribute.schedule = schedule;
  std::vector<std::unique_ptr<Model>> models;
  for (const Range ops : divide_model(setup.model, 3, setup.distribute.cut))
    models.push_back(std::make_unique<Model>(options, setup.model, ops));
  RunPlanRequest request = request_of(setup, models, 6, {1, 1, 1});
  request.evaluation_rows = 100;
  request.evaluation_sets = 2;
  request.evaluation_batch = 10;
  const RunPlan plan = make_run_plan(request);
  StageMemory memory(request, plan, [&](Range ops) {
    return StageMemory::Stage{std::make_unique<Model>(options, setup.model, ops), 1};
  });
  for (std::size_t i = 0; i < 3; ++i) {
    const auto counted = static_cast<double>(plan.stages[i].memory.total());
    EXPECT_NEAR(static_cast<double>(memory.bytes(models[i]->stage(), static_cast<Index>(i))), counted,
                0.1 * counted)
        << i;
  }
  EXPECT_GT(memory.bytes({2, 4}, 0), memory.bytes({2, 4}, 2) - (schedule == PipelineSchedule::kGpipe ? 1 : 0))
      << "more micro-batches are in memory";
}

TEST(StagePlan, EstimatesTheMemoryOfAnyOps) {
  // The middle stage has nothing of the weight that those around it share.
  const std::string tied =
      "dense(400) relu dense(200) tanh dense(100) relu dense(300) relu dense(100) relu dense(400, tie=0)";
  for (const PipelineSchedule& schedule :
       {PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kGpipe}) {
    expect_estimates(kDeep, schedule);
    expect_estimates(tied, schedule);
  }
}

TEST(StagePlan, SaysWhichRanksAreAGroup) {
  expect_parts(plan_table(std::vector{plan_of(2, 4)}),
               {"There are 2 groups, whose ranks are neighbours", "the first one is ranks 0, 1."});
}

TEST(StagePlan, IsPrintedWithTheIdleShare) {
  expect_parts(plan_table(std::vector{plan_of(2, 4)}),
               {"stages of a group", "received per sample",
                "A group takes 32 micro-batches through 2 stages: each is idle for 3 %"});
  EXPECT_EQ(plan_table(std::vector{plan_of(1, 4)}).find("stage"), std::string::npos);
}

// The share by its formula, and what would make it smaller; the operations of the largest stage.
TEST(StagePlan, SaysWhyStagesAreIdle) {
  const auto sentences = [](Index micro_batches, Index chunks, double most) {
    RunPlan plan = plan_of(2, 2);
    plan.micro_batches = micro_batches;
    plan.chunks = chunks;
    plan.flops = 1000;
    plan.stages[0].flops = static_cast<Index>(500 * most);
    plan.stages[1].flops = 1000 - plan.stages[0].flops;
    const std::string table = plan_table(std::vector{plan});
    return table.substr(table.find(": each is idle for") + 19);
  };
  const std::string formula = " of forward and backward, by (S - 1) / (m + S - 1).";
  EXPECT_EQ(sentences(8, 1, 1.25),
            "11 %" + formula + " 17 replicas for each group, or train.accumulate, would make it 6 %.\n");
  EXPECT_EQ(sentences(9, 1, 1.26), "10 %" + formula +
                                       "\nThe largest stage has 1.3 times the operations of the average: the "
                                       "others wait for it; divide its layers, or use fewer stages.\n");
  EXPECT_EQ(sentences(10, 1, 1), "9 %" + formula + "\n");
  EXPECT_EQ(sentences(2, 3, 1),
            "14 % of forward and backward, by (S - 1) / (v m + S - 1) with v = 3 chunks of the model on each "
            "rank. 5 replicas for each group, or train.accumulate, would make it 6 %.\n");
  EXPECT_EQ(sentences(1, 3, 1),
            "50 % of forward and backward, as there are fewer micro-batches than stages. 3 replicas for each "
            "group, or train.accumulate, would make it 10 %.\n");
}

// Stages take the replicas of one part of a step to each such layer together.
TEST(StagePlan, HoldsTheReplicasThatNormaliseTogether) {
  const std::string layers = "dense(64) batch_norm relu dense(64) relu dense(10)";
  const RunPlan plan = plan_of(2, 2, PipelineSchedule::kGpipe, "allreduce", {}, layers, "sync");
  EXPECT_TRUE(plan.lockstep);
  for (const StagePlan& stage : plan.stages) EXPECT_EQ(stage.alive, 64);
  expect_parts(plan_table(std::vector{plan}), {"waits until all of them are there"});
  expect_parts(
      error_text<ConfigError>(
          [&] { plan_of(2, 2, PipelineSchedule::kOneForwardOneBackward, "allreduce", {}, layers, "sync"); }),
      {"refused: distribute.stages with batch norm sync or group", "set distribute.schedule = \"gpipe\""});
}

TEST(StagePlan, NeedsAMultipleOfTheStages) {
  expect_parts(error_text<ConfigError>([] { plan_of(2, 3); }),
               {"refused: distribute.stages with a number of ranks", "found 3 ranks and 2 stages"});
  expect_parts(error_text<ConfigError>([] { plan_of(2, 130); }),
               {"65 groups of 2 ranks, one for each stage, but 64 replicas", "at most 128 ranks"});
}

}  // namespace lockstep::test::stage_plan_test
