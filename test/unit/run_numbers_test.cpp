// The few numbers that watch and the page show of a run: of which set, by which measure, how far and how
// long.
#include "report/history/run_numbers.h"

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
  RunDescription run;
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
  RunDescription run;
  run.metrics.train =
      table({{{"loss", NAN}}, {{"loss", 0.5}}, {{"loss", 0.25}}, {{"loss", 0.25}}, {{"loss", 1}}});
  const ShownMeasure least = shown_measure(run);
  EXPECT_EQ(least.best, 0.25);
  EXPECT_EQ(least.best_step, 30);
  EXPECT_EQ(least.last(), 1);
  run.metrics.evaluations = {
      {.split = "test", .table = table({{{"accuracy", 0.5}}, {{"accuracy", 0.75}}, {{"accuracy", 0.25}}})}};
  const ShownMeasure greatest = shown_measure(run);
  EXPECT_EQ(greatest.best, 0.75);
  EXPECT_EQ(greatest.best_step, 20);
  EXPECT_EQ(greatest.last(), 0.25);
}

TEST(ShownMeasure, IsNoneOfARunWithoutLines) {
  const RunDescription nothing;
  EXPECT_EQ(shown_measure(nothing).name(), "-");
  EXPECT_TRUE(std::isnan(shown_measure(nothing).last()));
  EXPECT_TRUE(std::isnan(shown_measure(nothing).best));
}

TEST(Progress, IsOfThePlannedSteps) {
  RunDescription run{.steps = 1234};
  EXPECT_EQ(progress_of(run), "1,234") << "nothing was planned";
  run.planned = {{"steps", "4,936"}};
  EXPECT_EQ(progress_of(run), "1,234/4,936 (25 %)");
  run.steps = 4936;
  EXPECT_EQ(progress_of(run), "4,936/4,936 (100 %)");
}

TEST(TimeLeft, IsOfTheStepsThatAreLeft) {
  RunDescription run{.state = "running", .steps = 50, .seconds = 20};
  run.planned = {{"steps", "200"}};
  EXPECT_EQ(time_left(run), "1 m 00 s");
  run.steps = 150;
  EXPECT_EQ(time_left(run), "6.7 s");
  for (const double steps : {0.0, 200.0, 250.0}) {
    run.steps = steps;
    EXPECT_EQ(time_left(run), "-") << steps;
  }
  run.steps = 50;
  run.state = "stopped";
  EXPECT_EQ(time_left(run), "-");
  run.state = "running";
  run.seconds = 0;
  EXPECT_EQ(time_left(run), "-");
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
