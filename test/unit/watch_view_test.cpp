// The view of `trainer watch`: curves of blocks, and lines that fit the terminal whatever a run is called.
#include "lockstep/report/history/viewed_run.h"

#include "lockstep/base/text.h"
#include "support/common.h"

namespace lockstep::watch_view_test {

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

TEST(BrailleCurve, RunsFromTheLeastToTheGreatestValue) {
  EXPECT_EQ(braille_curve({0, 3}, 1, 1), Lines{"⡸"}) << "a dot below on the left, a line up on the right";
  EXPECT_EQ(braille_curve({0, 1, 2, 3}, 2, 1), Lines{"⡠⠊"});
  EXPECT_EQ(braille_curve({7, 0}, 1, 2), (Lines{"⢱", "⢸"}));
  EXPECT_EQ(braille_curve({0, 2, 7, 7}, 1, 1), Lines{"⡸"}) << "the mean of each stretch";
  EXPECT_EQ(braille_curve({0, NAN, NAN, 3}, 2, 1), Lines{"⡀⠈"}) << "nothing is drawn over a gap";
  EXPECT_EQ(braille_curve({3, 3}, 1, 1), Lines{"⣀"});
  EXPECT_EQ(braille_curve({}, 3, 2), (Lines{"⠀⠀⠀", "⠀⠀⠀"}));
}

TEST(WatchView, OfOneRunShowsProgressCurvesAndTimes) {
  const Lines lines = watch_view({run_named("runs/a")}, {.columns = 80, .rows = 24});
  EXPECT_EQ(lines[0], "runs/a  running");
  EXPECT_EQ(lines[1], "step 50/200 (25 %)  250 samples/s  2.0 s  6.0 s left");
  EXPECT_EQ(std::ranges::count(lines[2], '\xe2'), 20) << "a quarter of the bar";
  EXPECT_EQ(lines[3], "validation accuracy 0.9 at step 30 (best); last: 0.5");
  const auto has = [&lines](const std::string& part) {
    return std::ranges::any_of(lines, [&](const std::string& line) { return line.starts_with(part); });
  };
  EXPECT_TRUE(has("train loss"));
  EXPECT_TRUE(has("validation accuracy"));
  EXPECT_TRUE(has("      compute ████"));
}

TEST(WatchView, SaysThatThereIsNothingYetAndDrawsNoNarrowCurves) {
  EXPECT_EQ(watch_view({ViewedRun{}}, {.columns = 80, .rows = 24})[3], "no metrics yet");
  for (const int columns : {22, 23}) {
    const Lines lines = watch_view({run_named("a")}, {.columns = columns, .rows = 24});
    const bool drawn =
        std::ranges::any_of(lines, [](const auto& line) { return line.starts_with("train loss"); });
    EXPECT_EQ(drawn, columns == 23) << "ten places for a curve";
  }
}

TEST(WatchView, FitsItsPlaceWhateverRunsAreCalled) {
  const ViewedRun hostile = run_named("runs/\x1b[2J<b>\n" + std::string(300, 'x'));
  ViewedRun warned = hostile;
  warned.record.warnings = {"first", "second\x1b]0;title\x07", std::string(500, 'w'), "fourth"};
  warned.record.reason = std::string(400, 'r');
  warned.name = "runs/größe-" + std::string(70, 'x');
  warned.record.plan.steps = 1'000'000'000;
  for (std::size_t rank = 0; rank < 9; ++rank) {
    warned.metrics.ranks.ranks.push_back({.compute = 100, .waiting = rank == 0 ? 0.0 : 50.0});
    warned.metrics.ranks.ranks.back().slowness = rank == 0 ? Slowness::kChronic : Slowness::kNone;
  }
  for (const auto& runs :
       {std::vector{hostile}, {warned}, {hostile, warned, warned, hostile}, {ViewedRun{}}}) {
    for (const ViewSize size : {ViewSize{80, 24}, {200, 50}, {20, 5}, {30, 3}}) {
      const Lines lines = watch_view(runs, size);
      EXPECT_LE(std::ssize(lines), size.rows) << size.columns;
      for (const std::string& line : lines) {
        EXPECT_LE(characters(line), size.columns) << line;
        EXPECT_TRUE(is_text(line)) << "no character is cut in two: " << line;
        EXPECT_EQ(line.find('\x1b'), std::string::npos);
      }
    }
  }
}

TEST(WatchView, OfSeveralRunsShowsHowFarHowFastAndHowGoodIn80Columns) {
  const Lines lines = watch_view({run_named("runs/sweep/a"), run_named("runs/sweep/b")}, {80, 24});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "run                state     done samples/s     left measure             loss");
  EXPECT_EQ(lines[1].substr(0, 72),
            "a                  running   25 %       250    6.0 s 0.9 accuracy       ");
  EXPECT_EQ(characters(lines[1]), 80) << lines[1];
}

TEST(WatchView, OfManyRunsSaysHowManyAreLeftOut) {
  const std::vector<ViewedRun> runs(10, run_named("runs/a"));
  const Lines lines = watch_view(runs, {.columns = 120, .rows = 6});
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines.back(), "... and 6 more");
}

}  // namespace lockstep::watch_view_test
