#include "lockstep/train/plan/run_plan.h"

#include "lockstep/base/errors.h"
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/storage/model_file.h"
#include "support/error_text.h"
#include "support/planned_run.h"

namespace lockstep::test::run_plan_test {

TEST(RunPlan, TheNumberOfRanksChangesNeitherStepsNorSchedule) {
  Given setup = typical();
  setup.schedule.schedule = "cosine";
  setup.schedule.lr_scaling = "linear";
  for (const char* warmup : {"100 steps", "64000 samples", "0.5 epochs"}) {
    setup.schedule.warmup = warmup;
    const RunPlan alone = setup.plan(1);
    EXPECT_EQ(std::tuple(alone.epoch.steps, alone.steps, alone.samples),
              std::tuple(5079, 2 * 5079, 1'300'000));
    EXPECT_DOUBLE_EQ(alone.times_each_seen, 2);
    EXPECT_NEAR(alone.lr_peak, 0.01 * 128 / 256, 1e-9);
    for (Index world = 2; world <= 64; ++world) {
      const RunPlan plan = setup.plan(world);
      EXPECT_EQ(std::tuple(plan.steps, plan.samples, plan.lr_start, plan.lr_peak, plan.lr_end),
                std::tuple(alone.steps, alone.samples, alone.lr_start, alone.lr_peak, alone.lr_end));
    }
  }
}

TEST(RunPlan, ThePeakIsWhatTheRunReaches) {
  Given setup = typical();
  setup.train.epochs = 0;
  setup.train.steps = 18;
  setup.schedule.warmup = "1000 steps";
  const RunPlan plan = setup.plan(1);
  EXPECT_NEAR(plan.lr_peak, 0.01 * (0.1 + 0.9 * 17 / 1000), 1e-9);
  EXPECT_EQ(plan.lr_peak, plan.lr_end);
}

TEST(RunPlan, KnowsHowLongTheModelFileWillBe) {
  Given setup = typical("dense(1)");
  setup.positive = "a class whose name is longer than the room that facts have";
  const ModelFacts facts{{kPositiveFact, setup.positive}, {kThresholdFact, "0.12345678901234567"}};
  EXPECT_EQ(setup.plan(1).model_head_bytes,
            std::ssize(model_file_head(setup.model.layout(), setup.model.input(), facts)));
}

TEST(RunPlan, LengthsInSamplesAndFractionsOfEpochs) {
  Given setup = typical();
  setup.train.epochs = 0;
  setup.train.samples = 650'000 + 1;
  EXPECT_EQ(setup.plan(1).steps, 5080);
  setup.train.samples = 1;
  EXPECT_EQ(setup.plan(1).steps, 1);
  setup.train.steps = 1;
  setup.train.samples = 650'000;
  EXPECT_EQ(setup.plan(1).steps, 1);
  setup.train.steps = 0;
  setup.train.samples = 0;
  setup.train.epochs = 0.5;
  EXPECT_EQ(setup.plan(1).steps, 2540);
  // 1.1 x 50 is above 55 in doubles.
  setup.rows = 50 * 128;
  setup.train.epochs = 1.1;
  EXPECT_EQ(setup.plan(1).steps, 55);
  setup.rows = 650'000;
  setup.train.epochs = 1e-9;
  EXPECT_EQ(setup.plan(1).steps, 1);
  setup.train.epochs = 1e6;
  setup.rows = 1'000'000'000'000;
  EXPECT_THROW(setup.plan(1), ConfigError);
}

// What a normalisation sees: samples of a replica, or of a group of them, in one of the accumulated parts.
TEST(RunPlan, SaysHowManySamplesABatchNormSees) {
  const auto text = [](const std::string& layers, Index accumulate, Index replicas = 8) {
    Given setup = typical(layers);  // 128 samples in a step
    setup.train.replicas = replicas;
    setup.train.accumulate = accumulate;
    return setup.plan(2).batch_norm;
  };
  const auto layers = [](const std::string& mode) {
    return "dense(16) batch_norm(mode=" + mode + ") relu dense(2)";
  };
  EXPECT_EQ(text(layers("local"), 1), "local (16 samples)");
  EXPECT_EQ(text(layers("local"), 2), "local (8 samples)");
  EXPECT_EQ(text(layers("local"), 3), "local (5 samples)") << "in the smallest part";
  EXPECT_EQ(text(layers("sync"), 40), "sync (8 samples)") << "no more parts than samples";
  EXPECT_EQ(text(layers("averaged"), 2), "averaged (8 samples)");
  EXPECT_EQ(text(layers("sync"), 1), "sync (128 samples)");
  EXPECT_EQ(text(layers("sync"), 2), "sync (64 samples)");
  EXPECT_EQ(text(layers("\"group(4)\""), 2), "group(4) (32 samples)");
  EXPECT_EQ(text(layers("sync"), 2, 16), "sync (64 samples)");
  EXPECT_EQ(text("dense(16) batch_norm(mode=local) relu dense(9) batch_norm(mode=sync) relu dense(8) "
                 "batch_norm(mode=local) dense(2)",
                 4),
            "local (4 samples), sync (32 samples)");
  EXPECT_EQ(text("dense(2)", 1), "");
}

TEST(RunPlan, FullModeCountsEveryReplicasPass) {
  Given setup = typical();
  setup.train.replicas = 6;
  setup.train.global_batch = 0;
  setup.train.per_replica_batch = 128;
  setup.train.epochs = 1;
  setup.data.mode = DataMode::kFull;
  const RunPlan plan = setup.plan(3);
  EXPECT_EQ(plan.sampling.global_batch, 768);
  EXPECT_EQ(plan.epoch.samples, 3'900'000);
  EXPECT_DOUBLE_EQ(plan.times_each_seen, 6);
}

// Where slices of whole blocks are about even.
constexpr const char* kWide = "dense(4096) relu dense(10)";

double ratio(Index of, Index to) {
  return static_cast<double>(of) / static_cast<double>(to);
}

TEST(RunPlan, OwnersShareTheOptimizerState) {
  Given setup = typical(kWide);
  setup.distribute.reduction = Reduction::kOrdered;
  const RunPlan all = setup.plan(4);
  setup.distribute.strategy = "zero1";
  const RunPlan zero1 = setup.plan(4);
  EXPECT_EQ(zero1.memory.weights, all.memory.weights);
  EXPECT_NEAR(ratio(zero1.memory.optimizer, all.memory.optimizer), 0.25, 0.01);
  EXPECT_NEAR(ratio(zero1.sent_bytes, all.sent_bytes), 1, 0.01);
  setup.distribute.strategy = "central_storage";
  const RunPlan one_node = setup.plan(4);
  EXPECT_EQ(one_node.sent_bytes, 0);
  EXPECT_EQ(one_node.memory.weights, all.memory.weights);
  EXPECT_NEAR(ratio(one_node.memory.optimizer, all.memory.optimizer), 0.25, 0.01);
  const RunPlan two_nodes = setup.plan(4, 2);
  EXPECT_NEAR(ratio(two_nodes.sent_bytes, all.gradient_bytes), 0.5, 0.01);  // half an arena each, both ways
}

TEST(RunPlan, ServersAndWorkersHoldAndSendDifferentThings) {
  Given setup = typical(kWide);
  const Index slots = setup.plan(4).memory.optimizer;
  setup.distribute.strategy = "parameter_server";
  setup.distribute.servers = 2;
  for (const ServerMode mode : {ServerMode::kSync, ServerMode::kAsync}) {
    setup.distribute.mode = mode;
    const RunPlan plan = setup.plan(6);
    EXPECT_EQ(std::tuple(plan.memory.optimizer, plan.server_memory.data, plan.server_memory.activations),
              std::tuple(0, 0, 0));
    EXPECT_NEAR(ratio(plan.server_memory.optimizer, slots), 0.5, 0.01);
    EXPECT_NEAR(ratio(plan.sent_bytes, plan.gradient_bytes), 1, 0.01);
    const double pulls = mode == ServerMode::kSync ? 5 : 1;  // by the workers and the other server
    EXPECT_NEAR(ratio(plan.server_sent_bytes, plan.gradient_bytes), 0.5 * pulls, 0.03);
    setup.distribute.compression = "bf16";
    EXPECT_NEAR(ratio(setup.plan(6).sent_bytes, plan.sent_bytes), 0.5, 0.01);
    EXPECT_EQ(setup.plan(6).server_sent_bytes, plan.server_sent_bytes);
    setup.distribute.compression = "fp32";
  }
}

// The question of tf.estimator's users: why 26,000 to 31,000 steps and not 5,079?
TEST(RunPlan, WorkersThatStepAloneMakeMoreSteps) {
  Given setup = typical();
  setup.train.epochs = 1;
  setup.train.global_batch = 0;
  setup.train.per_replica_batch = 128;
  setup.data.mode = DataMode::kFull;
  setup.distribute.strategy = "parameter_server";
  for (const Index workers : {5, 6}) {
    setup.train.replicas = workers;
    setup.distribute.mode = ServerMode::kSync;
    EXPECT_EQ(setup.plan(workers + 1).steps, 5079);
    setup.distribute.mode = ServerMode::kAsync;
    const RunPlan plan = setup.plan(workers + 1);
    EXPECT_EQ(plan.steps, 5079 * workers);
    EXPECT_EQ(plan.step_batch, 128);
    const std::string text = plan_table(std::span(&plan, 1));
    const std::string sentence =
        "Each step is one worker's gradient of 128 samples, applied as it arrives: " +
        std::to_string(workers) + " workers with 5,079 each in an epoch. Workers may end";
    expect_parts(text, {sentence});
    expect_no_parts(text, {"global batch"});
  }
  setup.distribute.mode = ServerMode::kSync;
  setup.distribute.backup_workers = 2;
  const RunPlan backup = setup.plan(7);
  EXPECT_EQ(backup.steps, 5079);
  EXPECT_EQ(backup.samples, 3'900'000 / 6 * 4);  // what is dropped is not learned from
  EXPECT_TRUE(plan_summary(backup).starts_with("5,079 steps of 512 samples")) << plan_summary(backup);
  const std::string text = plan_table(std::span(&backup, 1));
  expect_parts(text, {"the first 4 of 6 workers' gradients, 512 of 768 samples", "\nglobal batch"});
  setup.train.replicas = 12;  // two of each worker
  EXPECT_EQ(setup.plan(7).samples, 7'800'000 / 6 * 4);
  EXPECT_EQ(setup.plan(7).step_batch, 1024);
}

TEST(RunPlan, TheWireChangesWhatIsSentAndHeld) {
  Given setup = typical(kWide);
  const RunPlan plain = setup.plan(4);
  const auto share = [&](const RunPlan& plan) { return ratio(plan.sent_bytes, plain.sent_bytes); };
  setup.distribute.compression = "bf16";
  EXPECT_NEAR(share(setup.plan(4)), 0.5, 0.01);
  EXPECT_EQ(setup.plan(1).sent_bytes, 0);
  EXPECT_EQ(setup.plan(1).memory.gradients, plain.memory.gradients);
  const Index with_feedback = setup.plan(4).memory.gradients;
  setup.distribute.error_feedback = false;
  EXPECT_NEAR(ratio(with_feedback - setup.plan(4).memory.gradients, plain.gradient_bytes), 1.25, 0.01);
  setup.distribute.strategy = "zero1";  // weights come back as they are
  EXPECT_NEAR(share(setup.plan(4)), 0.75, 0.01);
  setup.distribute.compression = "top_k";
  EXPECT_NEAR(share(setup.plan(4)), 0.51, 0.01);
  setup.distribute.strategy = "allreduce";
  EXPECT_NEAR(share(setup.plan(4)), 0.02, 0.005);
}

TEST(RunPlan, TheAlgorithmChangesWhatIsSentAndHeld) {
  Given setup = typical(kWide);
  const RunPlan mpi = setup.plan(4);
  const auto with = [&](const std::string& algorithm, Index ranks_per_node) {
    setup.distribute.algorithm = algorithm;
    return setup.plan(4, ranks_per_node);
  };
  EXPECT_NEAR(ratio(with("ring", 0).sent_bytes, mpi.sent_bytes), 1, 0.01);
  EXPECT_NEAR(ratio(with("rabenseifner", 0).sent_bytes, mpi.sent_bytes), 1, 0.01);
  EXPECT_NEAR(ratio(with("ring", 0).memory.gradients - mpi.memory.gradients, mpi.gradient_bytes), 0.25, 0.01);
  EXPECT_EQ(with("shared", 0).sent_bytes, 0);
  EXPECT_EQ(with("auto", 0).sent_bytes, 0);
  EXPECT_LT(with("auto", 0).memory.gradients, mpi.memory.gradients + 4096);
  // Of two nodes each sends each byte of the gradients once, half of them by each of its ranks.
  EXPECT_NEAR(ratio(with("hierarchical", 2).sent_bytes, mpi.gradient_bytes), 0.5, 0.01);
  EXPECT_EQ(with("auto", 2).sent_bytes, with("hierarchical", 2).sent_bytes);
  EXPECT_EQ(with("auto", 1).sent_bytes, mpi.sent_bytes);
  setup.distribute.reduction = Reduction::kOrdered;
  EXPECT_EQ(with("auto", 0).sent_bytes, 0);
  EXPECT_GT(with("auto", 1).memory.gradients, mpi.memory.gradients);
}

TEST(RunPlan, ReplicasThatStepAloneNeedMoreMemoryAndFewerMessages) {
  Given setup = typical();
  setup.train.replicas = 8;
  setup.train.epochs = 0;
  setup.train.steps = 1000;
  const RunPlan together = setup.plan(2);
  setup.distribute.strategy = "local_sgd";
  setup.distribute.average_every = 10;
  const RunPlan alone = setup.plan(2);
  EXPECT_EQ(std::tuple(alone.dist.local_from, alone.memory.weights, alone.memory.optimizer),
            std::tuple(0, 4 * together.memory.weights, 4 * together.memory.optimizer));
  EXPECT_NEAR(static_cast<double>(alone.sent_bytes), 0.1 * static_cast<double>(together.sent_bytes), 1);
  EXPECT_EQ(alone.checkpoint_bytes, 8 * together.checkpoint_bytes);
  const auto table = [](const RunPlan& plan) { return plan_table(std::span(&plan, 1)); };
  const std::string own = "is an update that each of the 8 replicas makes to weights of its own";
  expect_parts(table(alone),
               {"Each step " + own, "after every 10 of them the weights of all replicas are averaged"});
  setup.distribute.average_state = true;
  setup.distribute.block_momentum = 0.5;
  setup.distribute.local_after = "25600 samples";
  const RunPlan later = setup.plan(2);
  EXPECT_EQ(later.dist.local_from, 200);
  EXPECT_EQ(later.memory.weights, 6 * together.memory.weights);
  EXPECT_NEAR(static_cast<double>(later.sent_bytes),
              (0.2 + 0.8 * 0.1 * 2) * static_cast<double>(together.sent_bytes), 1);
  expect_parts(table(later), {"Each of the first 200 steps is one update of the weights with the sum",
                              "Each later step " + own});
  setup.distribute.local_after = "5 epochs";
  EXPECT_EQ(setup.plan(2).sent_bytes, together.sent_bytes);
  expect_parts(table(setup.plan(2)), {"Each step is one update of the weights"});
}

TEST(RunPlan, TheSentenceSaysWhatTheTailDoes) {
  Given setup = typical();
  const auto table = [&] {
    const RunPlan plan = setup.plan(1);
    return plan_table(std::span(&plan, 1));
  };
  expect_parts(table(), {"each example is seen once.", "5,079 (rounded up, last: 16)"});
  setup.train.tail = Tail::kDrop;
  expect_parts(table(),
               {"seen once, but for the 16 dropped at its end.", "5,078 (rounded down, 16 dropped)"});
  setup.train.tail = Tail::kKeep;
  setup.rows = 100;
  expect_parts(table(), {"gradients of 100 samples over 64 replicas, divided by 100."});
  setup.weighted = true;
  expect_parts(table(), {"over 64 replicas, divided by the sum of the weights of these samples."});
  setup.of_positions = true;
  expect_parts(table(), {"divided by the sum of the weights of their positions that count."});
  setup.distribute.strategy = "local_sgd";
  expect_parts(table(), {"with the weighted mean gradient of its own samples"});
}

TEST(RunPlan, ShowsBatchesAndStepsThatDoNotDivide) {
  Given setup = typical();
  const auto cells = [&] {
    std::string text;
    for (const auto& row : plan_record(setup.plan(3), setup.model).table) {
      if (row[0] == "batch per replica" || row[0].starts_with("steps per")) text += row[1] + "; ";
    }
    return text;
  };
  EXPECT_EQ(cells(), "2; 5,079 (rounded up, last: 16); ");
  setup.train.tail = Tail::kDrop;
  EXPECT_EQ(cells(), "2; 5,078 (rounded down, 16 dropped); ");
  setup.train.global_batch = 130;
  EXPECT_EQ(cells(), "2 or 3; 5,000; ");
}

TEST(RunPlan, SaysHowItEndsAndWhatRatesThereAre) {
  Given setup = typical();
  RunPlan plan = setup.plan(2);
  const std::vector<std::string> before = plan_record(plan, setup.model).sentences;
  EXPECT_EQ(before.size(), 2U);
  plan.early_stopping = "after 3 epochs";
  plan.plateau = "falls by ten";
  plan.multipliers = {"0.*: 6", "1.*: 2"};
  std::vector<std::string> after = plan_record(plan, setup.model).sentences;
  after.erase(after.begin(), after.begin() + 2);
  EXPECT_EQ(after,
            (std::vector<std::string>{
                "The run ends early after 3 epochs; its steps, samples and epochs are at most those above.",
                "The learning rate falls by ten.", "0.*: 6.", "1.*: 2."}));
}

// A uniform average takes in the weights at the ends of epochs of 5,079 steps, and of the run.
TEST(RunPlan, SaysWhenWeightsAreAveraged) {
  Given setup = typical();
  setup.train.epochs = 4.5;
  EXPECT_FALSE(setup.plan(1).averages());
  setup.train.ema = 0.9;
  EXPECT_EQ(setup.plan(1).averaged_from, 1);
  EXPECT_FALSE(setup.plan(1).averages_between(0, 5079)) << "it does so in each step";
  setup.train.ema = 0;
  const auto first_epoch = [&](const char* from) {
    setup.train.swa_from = from;
    return static_cast<double>(setup.plan(1).averaged_from) / 5079;
  };
  EXPECT_EQ(first_epoch("0 epochs"), 1);
  EXPECT_EQ(first_epoch("2 epochs"), 2);
  EXPECT_EQ(first_epoch("2.1 epochs"), 3);
  EXPECT_EQ(first_epoch("10158 steps"), 2);
  EXPECT_EQ(first_epoch("10159 steps"), 3);
  EXPECT_EQ(first_epoch("1300000 samples"), 2);
  EXPECT_NEAR(first_epoch("4.2 epochs"), 4.5, 1e-3);
  setup.train.swa_from = "2 epochs";
  const RunPlan plan = setup.plan(1);
  EXPECT_FALSE(plan.averages_between(0, 10157));
  EXPECT_TRUE(plan.averages_between(0, 10158));
  EXPECT_FALSE(plan.averages_between(10158, 15236));
  EXPECT_TRUE(plan.averages_between(10158, 15237));
  EXPECT_TRUE(plan.averages_between(20316, plan.steps)) << "the end of the run";
  for (const char* over : {"5 epochs", "22856 steps"}) {
    setup.train.swa_from = over;
    EXPECT_THROW(setup.plan(1), ConfigError) << over;
  }
  setup.train.swa_from = "22855 steps";
  EXPECT_NO_THROW(setup.plan(1)) << "one step is left";
}

// Each number in the sentences of the plan is one of its fields, and unlike the others.
TEST(RunPlanSentences, SayTheNumbersOfThePlan) {
  struct Case {
    std::function<void(RunPlan&)> change;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases{
      {[](RunPlan&) {},
       {"gradients of 96 samples over 3 replicas, divided by 96", "over the 1,234 rows by all replicas",
        "but for the 82 dropped at its end"}},
      {[](RunPlan& p) { p.weighted = true; }, {"divided by the sum of the weights of these samples"}},
      {[](RunPlan& p) { p.of_positions = true; }, {"divided by the number of their positions that count"}},
      {[](RunPlan& p) { p.sampling.mode = DataMode::kFull; },
       {"by every one of the 3 replicas: 1,152 samples, each example 3 times, but for the 82"}},
      {[](RunPlan& p) { p.sampling.starts = 5000; }, {"An epoch is 1,152 windows that begin anywhere"}},
      {[](RunPlan& p) {
         p.asynchronous = true;
         p.max_ahead = 7;
       },
       {"gradient of 32 samples, applied as it arrives, no worker more than 7 ahead of the slowest: 4 "
        "workers with "
        "12 each in an epoch"}},
      {[](RunPlan& p) {
         p.asynchronous = true;
         p.backup_workers = 1;
       },
       {"the first 3 of 4 workers' gradients, 32 of 96 samples"}},
      {[](RunPlan& p) { p.average_every = 5; },
       {"each of the 3 replicas makes", "(96 samples in all); after every 5 of them"}},
      {[](RunPlan& p) {
         p.average_every = 5;
         p.dist.local_from = 8;
       },
       {"Each of the first 8 steps is one update",
        "Each later step is an update that each of the 3 replicas"}},
      {[](RunPlan& p) { p.single_values = 2; }, {"gives 2 of 3 replicas a single value"}},
      {[](RunPlan& p) { p.ema = 0.875, p.averaged_from = 1; }, {"exponential average (train.ema 0.875)"}},
      {[](RunPlan& p) { p.averaged_from = 45; }, {"uniform average from step 45 on"}},
      {[](RunPlan& p) { p.early_stopping = "after 6 epochs"; }, {"The run ends early after 6 epochs"}},
      {[](RunPlan& p) { p.plateau = "is multiplied by 0.25"; }, {"The learning rate is multiplied by 0.25."}},
  };
  for (const Case& each : cases) {
    RunPlan plan;
    plan.sampling.global_batch = 96;
    plan.sampling.replicas = 3;
    plan.sampling.rows = 1234;
    plan.epoch = {.positions = 1234, .steps = 12, .samples = 1152, .last_batch = 0, .times_each_seen = 1};
    plan.steps = 60;
    plan.step_batch = 32;
    plan.dist.world = 5;
    plan.dist.servers = 1;
    each.change(plan);
    expect_parts(plan_summary(plan), each.parts);
  }
}

}  // namespace lockstep::test::run_plan_test
