// The table that has runs line by line.
#include <gtest/gtest.h>

#include "lockstep/report/status_lines.h"

namespace lockstep {
namespace {

MetricsTable losses(const std::vector<double>& values) {
  MetricsTable table;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto step = static_cast<double>(10 * (i + 1));
    table.add({.step = step, .samples = 8 * step, .values = {{"loss", values[i]}}});
    table.seconds.push_back(step / 4);
  }
  return table;
}

RunDescription run_named(const std::string& name) {
  RunDescription run{.name = name, .state = "done", .steps = 40, .samples = 320, .seconds = 16};
  run.metrics.train = losses({2, 1, 0.5, 0.75});
  run.metrics.evaluations = {{.split = "validation", .table = losses({1.5, 1.25})}};
  return run;
}

TEST(StatusLines, HaveTheNumbersOfEachRun) {
  RunDescription a = run_named("runs/a");
  a.state = "running";
  a.planned = {{"steps", "160"}};
  a.metrics.evaluations[0].table = losses({1.5, 1.25, 1.375});
  EXPECT_EQ(status_lines({a, {.name = "runs/b", .state = "failed"}}),
            "run     state    steps          measure          last   best  samples/s  time left\n"
            "runs/a  running  40/160 (25 %)  validation loss  1.375  1.25  20         48.0 s\n"
            "runs/b  failed   0              -                -      -     -          -\n");
}

}  // namespace
}  // namespace lockstep
