// Models that are divided among ranks, from the executable: the bytes of the model are those of one rank.
#include <regex>

#include "support/file_faults.h"
#include "support/trainer_runs.h"

namespace lockstep::test::pipeline_runs_test {
namespace {

class PipelineRuns : public SmallRuns {
 protected:
  PipelineRuns() : SmallRuns("--distribute.reduction ordered ") {}
};

struct Arrangement {
  int ranks = 1;
  std::string flags;
};

TEST_F(PipelineRuns, HaveTheBytesOfOneRankInAnyArrangement) {
  const std::string residual =
      "--model.layers 'conv2d(4, 3, padding=same) batch_norm relu residual(conv2d(4, 3, padding=same) relu "
      "conv2d(4, 3, padding=same)) dropout(0.2) maxpool(2) flatten dense(8) relu dense(4)' ";
  const std::vector<std::pair<std::string, std::vector<Arrangement>>> cases{
      {"--train.momentum 0.9 --model.layers 'dense(16) relu dense(12) tanh dense(8) relu dense(4)' ",
       {{2, "--distribute.stages 2"},
        {4, "--distribute.stages 2 --distribute.schedule 'interleaved(2)' --distribute.strategy zero1"},
        {4, "--distribute.stages 2 --distribute.placement spread"},
        {6, "--distribute.stages 3"}}},
      {"--train.optimizer adamw --train.weight_decay 0.1 "
       "--model.layers 'dense(4) tanh dense(16) relu dense(12) tanh dense(4, tie=0)' ",
       {{2, "--distribute.stages 2"},
        {4, "--distribute.stages 2 --distribute.schedule 'interleaved(2)'"},
        {4, "--distribute.stages 4 --distribute.schedule gpipe"}}},
      {"--train.momentum 0.9 --model.batch_norm sync --train.accumulate 2 --train.global_batch 48 " +
           residual,
       {{4, "--distribute.stages 2 --distribute.schedule gpipe --distribute.cut 3.body.2"}}},
      {"--train.optimizer adam --train.clip_norm 0.5 --train.accumulate 2 --train.global_batch 48 " +
           residual,
       {{4, "--distribute.stages 2 --distribute.strategy zero1 --distribute.cut 3.body.2"},
        {6, "--distribute.stages 2 --distribute.schedule gpipe --distribute.strategy central_storage"}}}};
  for (const auto& [flags, arrangements] : cases) {
    const std::string alone = trained(1, flags);
    for (const Arrangement& arrangement : arrangements) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", arrangement.ranks, arrangement.flags));
      const std::string run = trained(arrangement.ranks, flags + arrangement.flags);
      EXPECT_TRUE(model_of(run) == model_of(alone));
      EXPECT_EQ(metrics_of(run), metrics_of(alone));
    }
  }
}

// Two groups of two stages, spread and then as neighbours, then one rank, then two stages of two chunks, then
// three stages.
TEST_F(PipelineRuns, GoOnInAnotherArrangement) {
  const std::string flags =
      "--train.optimizer adam --train.ema 0.9 --model.layers 'dense(4) relu dense(12) batch_norm relu "
      "dense(4, tie=0)' "
      "--checkpoint.every '5 steps' --checkpoint.wait true ";
  const std::string whole = trained(1, flags);
  const std::string run = experiment_.fresh_run();
  go_on(4, run, flags + "--distribute.stages 2 --distribute.placement spread", 4);
  go_on(4, run, flags + "--distribute.stages 2", 7);
  go_on(1, run, flags, 12);
  go_on(2, run, flags + "--distribute.stages 2 --distribute.schedule 'interleaved(2)'", 14);
  go_on(3, run, flags + "--distribute.stages 3 --distribute.strategy zero1", 0);
  EXPECT_TRUE(model_of(run) == model_of(whole));
  EXPECT_EQ(metrics_of(run), metrics_of(whole));
}

// With native sums another division of the ranks is another order.
TEST_F(PipelineRuns, SayThatOtherStagesAddInAnotherOrder) {
  const std::string run = experiment_.fresh_run();
  const auto go_on = [&](const std::string& more) {
    const ProcessResult result = run_trainer(
        4,
        fmt::format("--config {} --run.dir {} --distribute.strategy allreduce --distribute.calibrate false "
                    "--checkpoint.every '5 steps' --checkpoint.wait true {}",
                    experiment_.config(), run, more));
    return count_of(result.output, "made in another order now");
  };
  EXPECT_EQ(go_on("--distribute.stages 2 --debug.fail_rank 3 --debug.fail_step 7"), 0);
  EXPECT_EQ(go_on("--distribute.stages 2 --debug.fail_rank 3 --debug.fail_step 12"), 0);
  EXPECT_EQ(go_on(""), 1);
}

TEST_F(PipelineRuns, KeepTheBestWeights) {
  const std::string flags =
      "--data.validation 'share(0.2)' --train.keep best --train.lr 0.4 --train.early_stopping '2 epochs' "
      "--train.epochs 6 --train.calibrate temperature ";
  const std::string alone = trained(1, flags);
  const std::string run = trained(4, flags + "--distribute.stages 2");
  EXPECT_TRUE(model_of(run) == model_of(alone));
  EXPECT_EQ(metrics_of(run), metrics_of(alone));
}

// A bad number of a replica in the last stage, and one that the first stage makes.
TEST_F(PipelineRuns, StopAtABadNumberOfAnyStage) {
  for (const std::string bad :
       {"--debug.nan_replica 5 --debug.nan_step 3", "--train.lr 1e6 --model.layers 'dense(16) dense(4)'"}) {
    const ProcessResult alone = run_trainer(1, words(experiment_.fresh_run(), bad));
    const ProcessResult staged =
        run_trainer(4, words(experiment_.fresh_run(), bad + " --distribute.stages 2"));
    EXPECT_EQ(alone.exit_code, kExitTraining);
    EXPECT_EQ(staged.exit_code, kExitTraining) << staged.output;
    const std::regex message("the loss is .*");
    std::smatch expected;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(alone.errors, expected, message)) << alone.errors;
    ASSERT_TRUE(std::regex_search(staged.errors, found, message)) << staged.errors;
    EXPECT_EQ(found.str(), expected.str());
  }
}

TEST_F(PipelineRuns, SayWhatCannotBe) {
  expect_refused(3, "--distribute.stages 2", {"3 ranks and 2 stages", "start a multiple of"});
  expect_refused(3, "--distribute.stages 3", {"the model has 2 layers with weights"});
  expect_refused(2, "--distribute.stages 2 --distribute.cut 7", {"'7', which is no layer"});
  expect_refused(2, "--distribute.stages 2 --train.threads 2", {"with several threads"});
  expect_refused(2, "--distribute.stages 2 --distribute.schedule 'interleaved(2)'",
                 {"2 stages with 2 chunks each", "the model has 2 layers with weights"});
  expect_refused(2, "--distribute.stages 2 --distribute.schedule 'interleaved(1)'",
                 {"distribute.schedule", "interleaved(v) with v from 2"});
  expect_refused(2,
                 "--distribute.stages 2 --model.batch_norm sync --model.layers 'dense(8) batch_norm "
                 "dense(4)'",
                 {"batch norm sync or group", "set distribute.schedule = \"gpipe\""});
  const ProcessResult one =
      succeed(2, words(experiment_.fresh_run(), "--distribute.stages 2 --train.replicas 1"));
  expect_parts(one.output + one.errors, {"one stage computes while the others wait"});
}

// Nine layers with adam, of which a rank may not have all: the program takes more stages, and the same bytes
// come out.
TEST_F(PipelineRuns, TakeAsManyStagesAsMemoryNeeds) {
  const std::string deep =
      "--model.layers 'dense(256) relu dense(256) relu dense(256) relu dense(256) relu dense(256) relu "
      "dense(256) relu dense(256) relu dense(256) relu dense(4)' --train.optimizer adam --train.lr 0.001 "
      "--train.replicas 4 --train.steps 3 --checkpoint.every never --distribute.strategy allreduce ";
  const std::string alone = trained(1, deep);
  const std::string tight = deep + "--memory-per-rank 0.052 ";
  expect_refused(4, tight, {"more than distribute.memory_per_rank = 0.052 GiB", "\"auto\""});
  const std::string run = experiment_.fresh_run();
  const ProcessResult divided = succeed(4, words(run, tight + "--distribute.stages auto"));
  expect_parts(divided.output + divided.errors, {"distribute.stages = \"auto\": 2 stages, the fewest"});
  EXPECT_TRUE(model_of(run) == model_of(alone));
  expect_parts(read_file(run + "/config.toml"), {"\nstages = 2\n"});  // eval and predict divide it so
  const std::string tiny = deep + "--memory-per-rank 0.001 --distribute.stages auto ";
  expect_refused(2, tiny, {"on 2 ranks a rank needs at least", "start more ranks"});
  expect_refused(2, tiny + "--train.threads 2", {"more stages cannot be had", "several threads"});
  expect_refused(2, tiny + "--distribute.cut 99", {"'99', which is no layer"});
  const ProcessResult plan =
      succeed(fmt::format("plan --np 1,4 --config {} --distribute.reduction ordered "
                          "--distribute.stages auto {}",
                          experiment_.config(), tight));
  expect_parts(plan.output, {"np 1: distribute.stages", "on 1 rank a rank needs at least",
                             "micro-batches through 2 stages"});
}

// A wide table of categories takes no operations to speak of, so the balance puts a dense layer beside it.
TEST_F(PipelineRuns, AreCutWhereMemoryAllows) {
  std::string rows = "first,second,class\n";
  for (int i = 0; i < 96; ++i) rows += fmt::format("{},{},{}\n", i % 50, i % 7, i % 3);
  const std::string table = experiment_.directory() / "categories.csv";
  write_file_atomically(table, rows);
  const std::string config = experiment_.directory() / "categories.toml";
  write_file_atomically(
      config,
      fmt::format("[data]\ntrain = \"{}\"\nlabel = \"class\"\nscale = \"none\"\n"
                  "[model]\nlayers = \"embedding(20000, 8) dense(256) relu dense(256) relu dense(256) relu "
                  "dense(256) relu dense(3)\"\n"
                  "[train]\noptimizer = \"adam\"\nlr = 0.001\nsteps = 3\nglobal_batch = 24\nreplicas = 8\n"
                  "[distribute]\nstrategy = \"allreduce\"\nreduction = \"ordered\"\n"
                  "[checkpoint]\nevery = \"never\"\n",
                  table));
  const auto run_table = [&](int ranks, const std::string& more) {
    const std::string run = experiment_.fresh_run();
    return std::pair(run, run_trainer(ranks, fmt::format("--config {} --run.dir {} {}", config, run, more)));
  };
  const auto [alone, one] = run_table(1, "");
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  const std::string tight = "--distribute.stages 2 --memory-per-rank 0.0522 ";
  const auto [even, refused] = run_table(2, tight + "--distribute.cut 5");
  EXPECT_EQ(refused.exit_code, kExitConfig) << refused.output;
  const auto [run, cut] = run_table(2, tight);
  EXPECT_EQ(cut.exit_code, 0) << cut.errors;
  expect_parts(cut.output + cut.errors,
               {"distribute.cut = \"auto\": cut before", "where the work is even", ", within "});
  EXPECT_TRUE(model_of(run) == model_of(alone));
  expect_parts(read_file(run + "/config.toml"), {"\ncut = "});  // eval and predict divide it so
  const auto [none, too_large] = run_table(2, "--distribute.stages 2 --memory-per-rank 0.0005 ");
  EXPECT_EQ(too_large.exit_code, kExitConfig);
  expect_parts(too_large.errors, {"more than distribute.memory_per_rank", "the least found, above"});
}

// All records, with their twelve features, are 3.2 KiB.
TEST_F(PipelineRuns, LoadWhatTheirStagesNeed) {
  const std::string run = experiment_.fresh_run();
  const std::string deep = "--model.layers 'dense(16) relu dense(12) tanh dense(4)' ";
  const ProcessResult result =
      succeed(3, words(run, deep + "--distribute.stages 3 --train.class_weights balanced --data.audit true"));
  expect_parts(result.output,
               {"rank 0 loaded 203 rows", "rank 1 needs no records", "rank 2 loaded 203 rows, 876 B"});
  EXPECT_TRUE(model_of(run) == model_of(trained(1, deep + "--train.class_weights balanced")));
}

// With the stages of the run, with others, and as a whole.
TEST_F(PipelineRuns, AreEvaluatedAndPredictByStages) {
  const std::string run = trained(
      2, "--distribute.stages 2 --model.layers 'dense(4) relu dense(12) batch_norm tanh dense(4, tie=0)'");
  std::vector<nlohmann::json> evaluations;
  std::vector<std::string> predictions;
  for (const Arrangement& arrangement :
       {Arrangement{1, ""}, Arrangement{2, ""}, Arrangement{3, ""}, Arrangement{3, "--distribute.stages 3"},
        Arrangement{4, ""}, Arrangement{4, "--distribute.placement spread"}}) {
    SCOPED_TRACE(fmt::format("{} ranks, {}", arrangement.ranks, arrangement.flags));
    const std::string model = fmt::format("--model {} --eval.batch 8 {}", run, arrangement.flags);
    const std::string file = experiment_.directory() / fmt::format("predictions-{}.csv", predictions.size());
    const ProcessResult eval = run_trainer(arrangement.ranks, "eval --json - " + model);
    succeed(arrangement.ranks,
            fmt::format("predict {} --input {} --output {}", model, experiment_.test().images, file));
    evaluations.push_back(json_of(eval)["test"]);
    evaluations.back().erase("seconds");
    predictions.push_back(read_file(file));
    EXPECT_EQ(evaluations.back(), evaluations.front());
    EXPECT_TRUE(predictions.back() == predictions.front());
    const bool divides = arrangement.ranks % 2 == 0 || arrangement.flags.ends_with("3");
    EXPECT_EQ(count_of(eval.errors, "stages, one on each rank"), divides ? 1 : 0) << eval.errors;
  }
}

TEST_F(PipelineRuns, DoNotPredictByStagesWithSeveralThreads) {
  const std::string run = trained(2, "--distribute.stages 2");
  expect_failed(run_trainer(2, fmt::format("eval --model {} --train.threads 2", run)), kExitConfig,
                {"train.threads = 2 with distribute.stages = 2", "start more ranks"});
}

// Rank 0 cannot write what the others send, and all end.
TEST_F(PipelineRuns, EndTogetherOnAFullDisk) {
  const std::string run = experiment_.fresh_run();
  const FileFaults full(
      {.in = run + "/model.safetensors", .effect = "ENOSPC", .calls = "write", .count = kForever});
  const ProcessResult result = ended_with(
      run_trainer(2, words(run, "--distribute.stages 2 --checkpoint.every never"), full), kExitData);
  EXPECT_GT(full.hits(), 0);
  EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
  expect_parts(result.errors, {"this was lost: model.safetensors (cannot write", "No space left on device"});
}

TEST_F(PipelineRuns, ArePlanned) {
  const ProcessResult plan =
      succeed(fmt::format("plan --np 4 --config {} --distribute.stages 2", experiment_.config()));
  expect_parts(plan.output, {"stages of a group", "received per sample",
                             "A group takes 4 micro-batches through 2 stages: each is idle for 20 %"});
}

}  // namespace
}  // namespace lockstep::test::pipeline_runs_test
