// The few numbers that watch and the page show of a run: of which set, by which measure, how far and how
// long.
#include "lockstep/report/history/viewed_run.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

MetricsTable table(const std::vector<Values>& lines) {
  MetricsTable table;
  double step = 0;
  for (const Values& values : lines) table.add({.step = step += 10, .values = values});
  return table;
}

TEST(ShownMeasure, IsOfTheValidationSetBeforeTheTestSetBeforeTheTraining) {
  const EvaluationHistory validation{.split = "validation",
                                     .table = table({{{"loss", 0.5}, {"accuracy", 0.75}}})};
  const EvaluationHistory test{.split = "test", .table = table({{{"loss", 0.25}, {"accuracy", 0.875}}})};
  ViewedRun run;
  run.record.measure = "accuracy";
  run.metrics.train = table({{{"loss", 2.0}}});
  EXPECT_EQ(shown_measure(run).name(), "train loss");
  EXPECT_EQ(shown_measure(run).last(), 2);
  run.metrics.evaluations = {test};
  EXPECT_EQ(shown_measure(run).name(), "test accuracy");
  EXPECT_EQ(shown_measure(run).last(), 0.875);
  for (const auto& both : {std::vector{test, validation}, {validation, test}}) {
    run.metrics.evaluations = both;
    EXPECT_EQ(shown_measure(run).name(), "validation accuracy") << both[0].split << " first";
    EXPECT_EQ(shown_measure(run).last(), 0.75);
  }
}

TEST(ShownMeasure, HasTheBestOfItsKindTheFirstOfEquals) {
  ViewedRun run;
  run.metrics.train =
      table({{{"loss", NAN}}, {{"loss", 0.5}}, {{"loss", 0.25}}, {{"loss", 0.25}}, {{"loss", 1}}});
  const ShownMeasure least = shown_measure(run);
  EXPECT_EQ(least.best, 0.25);
  EXPECT_EQ(least.best_step, 30);
  EXPECT_EQ(least.last(), 1);
  run.record.measure = "accuracy";
  run.metrics.evaluations = {
      {.split = "test", .table = table({{{"accuracy", 0.5}}, {{"accuracy", 0.75}}, {{"accuracy", 0.25}}})}};
  const ShownMeasure greatest = shown_measure(run);
  EXPECT_EQ(greatest.best, 0.75);
  EXPECT_EQ(greatest.best_step, 20);
  EXPECT_EQ(greatest.last(), 0.25);
}

TEST(ShownMeasure, IsNoneOfARunWithoutLines) {
  const ViewedRun nothing;
  EXPECT_EQ(shown_measure(nothing).name(), "-");
  EXPECT_TRUE(std::isnan(shown_measure(nothing).last()));
  EXPECT_TRUE(std::isnan(shown_measure(nothing).best));
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

}  // namespace
}  // namespace lockstep
