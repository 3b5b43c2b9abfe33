// The sentences of a page: what came of a run, and what is worth a look, with their numbers.
#include "report/page/page_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

MetricsTable table(double first_step, const std::vector<Values>& lines) {
  MetricsTable table;
  double step = first_step;
  for (const Values& values : lines) {
    table.add({.step = step, .values = values});
    step += 10;
  }
  return table;
}

// A run that was best at step 1,000, with the losses of its last line and of its last evaluation.
PageRun run_of_losses(double train, double validation) {
  PageRun run;
  run.record = {.state = RunState::kDone, .progress = {.steps = 1200}, .kept = {.best = true, .step = 1000}};
  run.config = {{"train.early_stopping", "", ""}, {"train.weight_decay", "0", "0"}};
  run.metrics.train = table(995, {{{"loss", 0.5}}, {{"loss", train}}});
  run.metrics.evaluations = {
      {.split = "validation", .table = table(1000, {{{"loss", 0.5}}, {{"loss", validation}}})}};
  return run;
}

PageRun run_of_two_sets() {
  PageRun run;
  run.name = "runs/a";
  RunRecord& record = run.record;
  record.state = RunState::kDone;
  record.progress = {.steps = 1200, .samples = 9600, .epochs = 2.5};
  record.seconds = 90;
  record.plan = {.ranks = 4, .rows = 3840, .parameters = 1234, .steps = 1500};
  record.kept = {.best = true, .step = 1000};
  record.figures["validation"] = {.step = 1000, .values = {{"loss", 0.5}, {"accuracy", 0.8125}}};
  record.last["validation"] = {.step = 1200, .values = {{"loss", 0.375}, {"accuracy", 0.75}}};
  record.figures["test"] = {.step = 1000, .values = {{"loss", 0.4375}, {"auc", 0.96875}}};
  record.last["test"] = record.figures["test"];
  record.deciding["validation"] = {
      .split = "validation", .measure = "accuracy", .value = 0.8125, .step = 1000};
  run.config = {{"model.layers", "dense(2)", ""},
                {"data.train", "a.csv", ""},
                {"train.loss", "softmax_cross_entropy", ""},
                {"train.optimizer", "adam", ""}};
  run.metrics.train = table(10, {{{"loss", 0.5}}, {{"loss", 0.25}}});
  run.metrics.evaluations = {
      {.split = "validation",
       .table = table(600, {{{"loss", 0.5}, {"accuracy", 0.75}}, {{"loss", 0.375}, {"accuracy", 0.8125}}})},
      {.split = "test", .table = table(1200, {{{"loss", 0.4375}, {"auc", 0.96875}, {"samples", 100}}})}};
  return run;
}

using Lines = std::vector<std::string>;

TEST(RunStory, TellsTheLengthTheLastMeasuresAndWhatIsKept) {
  PageRun run = run_of_two_sets();
  EXPECT_EQ(
      tell_story(run),
      (Lines{"A model \"dense(2)\" of 1,234 parameters was trained on a.csv (3,840 records), with the loss "
             "softmax_cross_entropy and the optimizer adam.",
             "It made 1,200 of 1,500 steps, 2.5 epochs with 9,600 samples, on 4 ranks, in 1 m 30 s of "
             "training (107 samples a second).",
             "On the validation set after step 1,000: loss 0.5, accuracy 81.25 %.",
             "The last evaluation, after step 1,200: loss 0.375, accuracy 75.00 %.",
             "On the test set after step 1,000: loss 0.4375, AUC 0.96875.",
             "Kept are the weights of step 1,000, with the best accuracy 81.25 % of the validation set."}));
  run.record.kept = {.best = false, .step = 1200};
  run.record.state = RunState::kStoppedEarly;
  run.record.reason = "no better loss";
  EXPECT_EQ(tell_story(run).at(2), "It ended early: no better loss.");
  EXPECT_EQ(tell_story(run).back(), "Kept are the last weights, those of step 1,200.");
  run.record.state = RunState::kRunning;
  run.metrics.evaluations.clear();
  run.record.figures.clear();
  EXPECT_EQ(tell_story(run).back(), "The training loss 0.25 is all that was measured.");
}

// The one of them that begins so; "" if there is none.
std::string thing(const PageRun& run, const std::string& words) {
  const Lines all = things_to_look_at(run);
  const auto found = std::ranges::find_if(
      all, [&](const std::string& line) { return line.find(words) != std::string::npos; });
  return found == all.end() ? "" : *found;
}

// Best before 70 % of the steps: it fits its training data too closely; best at the end: it may go on.
TEST(ThingsToLookAt, SayWhereTheValidationSetWasBest) {
  PageRun run = run_of_two_sets();
  EXPECT_EQ(things_to_look_at(run), Lines{});
  run.record.kept.step = 840;
  EXPECT_EQ(things_to_look_at(run), Lines{}) << "just 70 %";
  run.record.kept.step = 839;
  EXPECT_NE(thing(run, "best at step 839 of 1,200, and no better afterwards"), "");
  run.record.kept.step = 1199;
  EXPECT_EQ(things_to_look_at(run), Lines{});
  run.record.kept.step = 1200;
  EXPECT_NE(thing(run, "best at the last step"), "");
  run.record.kept.best = false;
  EXPECT_EQ(things_to_look_at(run), Lines{});
  run.metrics.evaluations.erase(run.metrics.evaluations.begin());
  EXPECT_NE(thing(run, "There was no validation set"), "") << "a test set is none";
}

TEST(ThingsToLookAt, SayThatTheModelFitsTooCloselyIfOnlyTheTrainingLossFalls) {
  PageRun run = run_of_losses(0.25, 0.75);
  EXPECT_NE(thing(run,
                  "too closely after that. train.early_stopping would end such a run, or train.weight_decay "
                  "may help."),
            "");
  run.config[0].value = "5 epochs";
  EXPECT_NE(thing(run, "too closely after that. train.weight_decay may help."), "") << "stopping was tried";
  run.config[1].value = "0.01";
  EXPECT_TRUE(thing(run, "too closely").ends_with("too closely after that.")) << "both were tried";
  EXPECT_EQ(thing(run_of_losses(0.625, 0.75), "too closely"), "") << "the training loss rises, too";
  EXPECT_EQ(thing(run_of_losses(0.25, 0.51), "too closely"), "") << "hardly worse";
  EXPECT_EQ(thing(run_of_losses(0.25, 0.375), "too closely"), "") << "better";
}

TEST(ThingsToLookAt, PromiseNothingBetterThanRight) {
  PageRun run = run_of_two_sets();
  run.record.kept.step = 1200;
  EXPECT_NE(thing(run, "a longer run may be better"), "");
  run.record.deciding["validation"].value = 1;
  EXPECT_EQ(thing(run, "a longer run may be better"), "");
}

TEST(ThingsToLookAt, GiveNoAdviceThatWasFollowed) {
  PageRun run = run_of_two_sets();
  run.record.result["time"] = {{"data", 0.5}};
  run.config.push_back({"data.prefetch", "4", ""});
  run.config.push_back({"train.threads", "1", "1"});
  EXPECT_NE(thing(run, "in waiting for samples: train.threads shares the work out."), "");
  run.config.back().value = "4";
  EXPECT_NE(thing(run, "in waiting for samples."), "");
  run.metrics.train = table(10, {{{"loss", NAN}}});
  run.config.push_back({"train.clip_norm", "1", "0"});
  EXPECT_NE(thing(run, "A lower learning rate (train.lr), or a warm-up (train.warmup) may help."), "");
}

TEST(ThingsToLookAt, SayWhatTookMoreThanAQuarterOfTheTime) {
  PageRun run = run_of_two_sets();
  run.record.result["time"] = {{"data", 0.25}, {"communication", 0.25}, {"waiting", 0.25}, {"idle", 0.25}};
  EXPECT_EQ(things_to_look_at(run), Lines{});
  run.record.result["time"] = {{"idle", 0.3}};
  EXPECT_TRUE(thing(run, "stages waited").starts_with("30 % of the time stages waited for other stages"));
  run.record.result["time"] = {{"data", 0.3}, {"communication", 0.4}, {"waiting", 0.26}};
  EXPECT_TRUE(thing(run, "waiting for samples").starts_with("30 % of the time"));
  EXPECT_TRUE(thing(run, "exchange of gradients").starts_with("40 % of the time"));
  EXPECT_TRUE(thing(run, "waiting for the slowest rank").starts_with("26 % of the time"));
}

TEST(ThingsToLookAt, NameTheFirstLossThatIsNoNumber) {
  PageRun run = run_of_two_sets();
  run.metrics.train = table(10, {{{"loss", 1}}, {{"loss", INFINITY}}, {{"loss", NAN}}});
  EXPECT_NE(
      thing(run, "The training loss is not a finite number (NaN or infinite), first in the line of step 20."),
      "");
}

// Rows are true classes. Of class 1 three of ten are right, and five are taken for class 2.
TEST(ThingsToLookAt, NameTheClassThatIsRecognisedLeast) {
  PageRun run = run_of_two_sets();
  run.classes = {"ant", "bee", "cow"};
  run.metrics.evaluations[0].confusion = {{9, 1, 0}, {2, 3, 5}, {4, 0, 6}};
  EXPECT_EQ(
      thing(run, "is recognised least"),
      "Class 1 (bee) is recognised least: 30.0 % of its samples in the validation set. It is most often "
      "taken for class 2 (cow) (5 of 10).");
  run.metrics.evaluations[1].confusion = {{1, 3, 0}, {0, 4, 0}, {0, 0, 0}};
  EXPECT_EQ(
      thing(run, "is recognised least"),
      "Class 0 (ant) is recognised least: 25.0 % of its samples in the test set. It is most often taken for "
      "class 1 (bee) (3 of 4).");
  run.metrics.evaluations[1].confusion = {{4, 0}, {0, 4}};
  EXPECT_EQ(thing(run, "is recognised least"), "") << "all are right";
}

TEST(ThingsToLookAt, SayWhatASlowRankCosts) {
  PageRun run = run_of_two_sets();
  run.metrics.ranks.seconds = 200;
  run.metrics.ranks.windows = 10;
  run.metrics.ranks.ranks = {{.host = "n1"},
                             {.host = "n2",
                              .delay = 25,
                              .to_best = 1.5,
                              .to_own = 1.25,
                              .slow_windows = 9,
                              .slowness = Slowness::kChronic}};
  EXPECT_EQ(thing(run, "is slow"),
            "Rank 1 on host n2 is slow (chronic): its data and compute take 1.50 times those of the fastest "
            "rank and "
            "1.25 times its own best, and waiting for it costs 12.5 % of the time of all ranks.");
  run.metrics.ranks.seconds = 20;
  EXPECT_EQ(thing(run, "is slow"), "") << "a run of seconds";
}

}  // namespace
}  // namespace lockstep
