// The view of `trainer watch`: curves of blocks, and lines that fit the terminal whatever a run is called.
#include "lockstep/report/history/watch_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

Index characters(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

MetricsLine training(double step, double loss) {
  return {.kind = "train",
          .step = step,
          .epoch = step / 100,
          .samples = 10 * step,
          .values = {{"loss", loss},
                     {"samples_per_second", 1000.0},
                     {"time.data", 0.25},
                     {"time.compute", 0.5},
                     {"time.communication", 0.125},
                     {"time.waiting", 0.125}}};
}

ViewedRun run_named(const std::string& name) {
  ViewedRun run{.name = name};
  run.record.measure = "accuracy";
  run.record.plan.steps = 200;
  run.record.progress = {.steps = 50, .samples = 500};
  run.record.seconds = 2;
  EvaluationHistory validation{.split = "validation"};
  for (int i = 1; i <= 50; ++i) {
    run.metrics.train.add(training(i, 1.0 / i));
    if (i % 10 != 0) continue;
    run.record.add_evaluation("validation", {.steps = i}, {{"loss", 0.5}, {"accuracy", i == 30 ? 0.9 : 0.5}});
    validation.table.add({.kind = "evaluation",
                          .split = "validation",
                          .step = static_cast<double>(i),
                          .values = {{"loss", 0.5}, {"accuracy", i == 30 ? 0.9 : 0.5}}});
  }
  run.metrics.evaluations.push_back(validation);
  return run;
}

TEST(BlockCurve, FillsFromTheLeastToTheGreatestValue) {
  EXPECT_EQ(block_curve({0, 1, 2, 3, 4, 5, 6, 7}, 8, 1), Lines{"▁▂▃▄▅▆▇█"});
  EXPECT_EQ(block_curve({1, 0}, 2, 2), (Lines{"█ ", "█▁"}));
  EXPECT_EQ(block_curve({0, 2, 7, 7}, 2, 1), Lines{"▁█"}) << "the mean of each stretch";
  EXPECT_EQ(block_curve({0, 7}, 4, 1), Lines{"▁▁██"});
  EXPECT_EQ(block_curve({0, NAN, 7}, 3, 1), Lines{"▁ █"});
  EXPECT_EQ(block_curve({3, 3}, 2, 1), Lines{"██"});
  EXPECT_EQ(block_curve({}, 3, 2), (Lines{"", ""}));
}

TEST(WatchView, OfOneRunShowsProgressCurvesAndTimes) {
  const Lines lines = watch_view({run_named("runs/a")}, {.columns = 80, .rows = 24});
  EXPECT_NE(lines[0].find("runs/a  running  step 50/200 (25 %)"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("250 samples/s"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("6.0 s left"), std::string::npos) << lines[0];
  EXPECT_EQ(std::ranges::count(lines[1], '\xe2'), 20) << "a quarter of the bar";
  EXPECT_EQ(lines[2], "validation accuracy 0.9 at step 30 (best); last: 0.5");
  const auto has = [&lines](const std::string& part) {
    return std::ranges::any_of(lines, [&](const std::string& line) { return line.starts_with(part); });
  };
  EXPECT_TRUE(has("train loss"));
  EXPECT_TRUE(has("validation accuracy"));
  EXPECT_TRUE(has("      compute ████"));
}

TEST(WatchView, FitsItsPlaceWhateverRunsAreCalled) {
  const ViewedRun hostile = run_named("runs/\x1b[2J<b>\n" + std::string(300, 'x'));
  ViewedRun warned = hostile;
  warned.record.warnings = {"first", "second\x1b]0;title\x07", std::string(500, 'w'), "fourth"};
  warned.record.reason = std::string(400, 'r');
  for (const auto& runs :
       {std::vector{hostile}, {warned}, {hostile, warned, warned, hostile}, {ViewedRun{}}}) {
    for (const ViewSize size : {ViewSize{80, 24}, {200, 50}, {20, 5}, {30, 3}}) {
      const Lines lines = watch_view(runs, size);
      EXPECT_LE(std::ssize(lines), size.rows) << size.columns;
      for (const std::string& line : lines) {
        EXPECT_LE(characters(line), size.columns) << line;
        EXPECT_EQ(line.find('\x1b'), std::string::npos);
      }
    }
  }
}

TEST(WatchView, OfManyRunsSaysHowManyAreLeftOut) {
  const std::vector<ViewedRun> runs(10, run_named("runs/a"));
  const Lines lines = watch_view(runs, {.columns = 120, .rows = 6});
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines.back(), "... and 6 more");
}

}  // namespace
}  // namespace lockstep
