// The few numbers that watch and the page show of a run: of which set, by which measure, how far, how long.
#include "lockstep/report/history/viewed_run.h"
#include "support/common.h"

namespace lockstep::run_numbers_test {

// As a run adds the lines of its metrics.
void evaluate(ViewedRun& run, const std::string& split, Index step, const MetricValues& values) {
  run.record.add_evaluation(split, {.steps = step}, values);
  auto found = std::ranges::find(run.metrics.evaluations, split, &EvaluationHistory::split);
  if (found == run.metrics.evaluations.end()) found = run.metrics.evaluations.insert(found, {.split = split});
  found->table.add({.step = static_cast<double>(step), .values = values});
}

TEST(ShownMeasure, IsOfTheValidationSetBeforeTheTestSetBeforeTheTraining) {
  ViewedRun run;
  run.record.measure = "accuracy";
  run.metrics.train.add({.step = 10, .values = {{"loss", 2.0}}});
  run.record.add_training({.steps = 10}, 2, 1);
  EXPECT_EQ(shown_measure(run).name(), "train loss");
  EXPECT_EQ(shown_measure(run).value, 2);
  evaluate(run, "test", 10, {{"loss", 0.25}, {"accuracy", 0.875}});
  EXPECT_EQ(shown_measure(run).name(), "test accuracy");
  EXPECT_EQ(shown_measure(run).value, 0.875);
  evaluate(run, "validation", 10, {{"loss", 0.5}, {"accuracy", 0.75}});
  EXPECT_EQ(shown_measure(run).name(), "validation accuracy");
  EXPECT_EQ(shown_measure(run).value, 0.75);
}

TEST(ShownMeasure, IsThatOfTheKeptWeightsWithTheLastBeside) {
  ViewedRun best, last{.record = {.keeps_best = false}};
  for (ViewedRun* run : {&best, &last}) {
    run->record.measure = "accuracy";
    for (const auto& [step, value] : {std::pair{10, 0.5}, {20, 0.75}, {30, 0.75}, {40, 0.25}})
      evaluate(*run, "validation", step, {{"accuracy", value}});
    EXPECT_EQ(shown_measure(*run).last, 0.25);
    EXPECT_EQ(shown_measure(*run).values->values.size(), 4U);
  }
  EXPECT_EQ(shown_measure(best).value, 0.75);
  EXPECT_EQ(shown_measure(best).best, 0.75);
  EXPECT_EQ(shown_measure(best).best_step, 20) << "the first of equals";
  EXPECT_TRUE(has_other_last(best, "validation"));
  EXPECT_EQ(shown_measure(last).value, 0.25) << "its model has the last weights";
  EXPECT_EQ(shown_measure(last).best_step, 40);
  EXPECT_FALSE(has_other_last(last, "validation"));
  best.record.figures["validation"].values = {{"accuracy", 0.8125}};
  EXPECT_EQ(shown_measure(best).value, 0.8125) << "with the temperature";
  EXPECT_EQ(shown_measure(best).best, 0.75) << "which chose the weights";
}

TEST(ShownMeasure, IsNoneOfARunWithoutLines) {
  const ViewedRun nothing;
  EXPECT_EQ(shown_measure(nothing).name(), "-");
  EXPECT_TRUE(std::isnan(shown_measure(nothing).last));
  EXPECT_TRUE(std::isnan(shown_measure(nothing).best));
  EXPECT_EQ(shown_measure(nothing).values, nullptr);
}

TEST(Progress, IsOfThePlannedSteps) {
  ViewedRun run;
  run.record.progress.steps = 1234;
  EXPECT_EQ(progress_of(run), "1,234") << "nothing was planned";
  run.record.plan.steps = 4936;
  EXPECT_EQ(progress_of(run), "1,234/4,936 (25 %)");
  run.record.progress.steps = 4936;
  EXPECT_EQ(progress_of(run), "4,936/4,936 (100 %)");
}

TEST(SecondsLeft, AreThoseOfTheStepsThatAreLeft) {
  ViewedRun run;
  RunRecord& record = run.record;
  record.plan.steps = 200;
  record.progress.steps = 50;
  record.seconds = 20;
  EXPECT_EQ(seconds_left(run), 60);
  record.progress.steps = 150;
  EXPECT_NEAR(seconds_left(run), 6.67, 0.01);
  for (const Index steps : {0, 200, 250}) {
    record.progress.steps = steps;
    EXPECT_TRUE(std::isnan(seconds_left(run))) << steps;
  }
  record.progress.steps = 50;
  record.state = RunState::kStopped;
  EXPECT_TRUE(std::isnan(seconds_left(run)));
  record.state = RunState::kRunning;
  record.seconds = 0;
  EXPECT_TRUE(std::isnan(seconds_left(run)));
}

TEST(RanksWaitingLeast, AreThoseThatOthersWaitForInOrder) {
  std::vector<RankTime> ranks(5);
  const std::vector<double> waiting{4, 1, 3, 1, 0.5};
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].waiting = waiting[i];
  using Numbers = std::vector<std::size_t>;
  EXPECT_EQ(ranks_waiting_least(ranks, 1), Numbers{4});
  EXPECT_EQ(ranks_waiting_least(ranks, 2), (Numbers{1, 4})) << "the first of equals";
  EXPECT_EQ(ranks_waiting_least(ranks, 4), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(ranks_waiting_least(ranks, 9), (Numbers{0, 1, 2, 3, 4}));
}

TEST(DifferingKeys, AreThoseThatNameAResult) {
  ViewedRun first;
  for (const char* key : {"run.dir", "run.resume", "run.progress", "run.plan", "checkpoint.dir",
                          "report.html", "run.seed", "checkpoint.every", "train.lr"})
    first.config.push_back({key, "a", ""});
  ViewedRun second = first;
  for (ConfigLine& line : second.config) line.value = line.key == "train.lr" ? "a" : "b";
  const ViewedRun unread;
  const std::vector<const ViewedRun*> runs{&unread, &first, &second};
  EXPECT_EQ(differing_keys(runs, false), (std::vector<std::string>{"run.seed", "checkpoint.every"}));
  EXPECT_EQ(differing_keys(runs, true).size(), 8U);
  EXPECT_TRUE(differing_keys({&first, &unread}, true).empty());
  second.refused = true;
  second.settings = {"train.lr", "run.seed"};
  EXPECT_EQ(differing_keys(runs, true), std::vector<std::string>{"run.seed"}) << "what it was refused with";
}

TEST(KeptPoints, AreTheLeastAndTheGreatestOfEachPartAndTheEnds) {
  const std::vector<double> values{5, 1, 9, 3, NAN, 4, 8, 0, 2, 7, 6, 6};
  EXPECT_EQ(kept_points(values, 6), (std::vector<std::size_t>{0, 1, 2, 6, 7, 11}));
  EXPECT_EQ(kept_points(values, 8), (std::vector<std::size_t>{0, 1, 2, 6, 7, 8, 9, 11}));
  EXPECT_EQ(kept_points(values, 11).size(), 10U) << "four parts of three";
  EXPECT_EQ(kept_points(values, 12).size(), 12U);
}

// The record of the end has them, else the last line of metrics.
TEST(TimeShare, IsThatOfTheEndOrOfTheLastLine) {
  ViewedRun run;
  EXPECT_EQ(time_share(run, "data"), 0);
  run.metrics.train.add({.step = 10, .values = {{"time.data", 0.5}, {"time.idle", NAN}}});
  run.metrics.train.add({.step = 20, .values = {{"time.data", 0.25}}});
  for (const char* result : {"null", "{}", "{\"time\": 7}"}) {
    run.record.result = nlohmann::ordered_json::parse(result);
    EXPECT_EQ(time_share(run, "data"), 0.25) << result;
  }
  EXPECT_EQ(time_share(run, "idle") + time_share(run, "none"), 0);
  run.record.result = nlohmann::ordered_json::parse(R"({"time": {"data": 0.75, "idle": null}})");
  EXPECT_EQ(time_share(run, "data"), 0.75);
  EXPECT_EQ(time_share(run, "idle") + time_share(run, "none"), 0);
}

}  // namespace lockstep::run_numbers_test
