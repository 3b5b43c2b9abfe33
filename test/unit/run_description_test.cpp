// What the page, watch and status read of a run directory: each number from its place.
#include "app/runs/run_description.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/file.h"
#include "lockstep/train/storage/run_directory.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

class DescribeRun : public testing::Test {
 protected:
  DescribeRun() {
    write_file_atomically(run_.config(), "[train]\nlr = 0.25\n");
    write_file_atomically(
        run_.plan(),
        "layer  output\n\nsamples per epoch  1,000\nsteps              60\n  indented  no row\n");
    write_file_atomically(
        run_.metrics(),
        R"({"kind":"train","step":10,"epoch":0.5,"samples_seen":500,"loss":2,"samples_per_second":250})"
        "\n"
        R"({"kind":"evaluation","split":"validation","step":15,"epoch":0.75,"samples_seen":750,"loss":1,"confusion":[[1,2],[3,4]]})"
        "\n"
        R"({"kind":"train","step":20,"epoch":1,"samples_seen":1500,"loss":1,"samples_per_second":500})"
        "\n"
        R"({"kind":"evaluation","split":"validation","step":30,"epoch":1.5,"samples_seen":1500,"loss":3,"confusion":[[5,6],[7,8]]})"
        "\n");
  }
  void summarise() const {
    write_file_atomically(
        run_.summary(),
        R"({"steps":40,"samples_seen":2000,"epochs":2,"seconds":16,"algorithm":"ring",)"
        R"("time":{"data":0.0625,"compute":0.5,"communication":0.25,"waiting":0.125,"idle":0.03125},)"
        R"("kept":{"weights":"best","step":15,"measure":"loss","value":1},)"
        R"("evaluation":{"split":"test","reliability":[{"from":0,"to":0.5,"samples":3,"predicted":0.25,"observed":0.375}]}})");
    write_file_atomically(run_.model(), "");
  }

  const test::TemporaryDirectory directory_;
  const RunDirectory run_{directory_.path()};
};

TEST_F(DescribeRun, TakesEachNumberOfTheSummary) {
  summarise();
  const RunDescription run = describe_run(run_.root);
  EXPECT_EQ(run.state, "done");
  EXPECT_EQ(run.steps, 40);
  EXPECT_EQ(run.samples, 2000);
  EXPECT_EQ(run.epochs, 2);
  EXPECT_EQ(run.seconds, 16);
  EXPECT_EQ(run.algorithm, "ring");
  EXPECT_EQ(run.value("train.lr"), "0.25");
  ASSERT_TRUE(run.time);
  EXPECT_EQ(run.time->data, 0.0625);
  EXPECT_EQ(run.time->compute, 0.5);
  EXPECT_EQ(run.time->communication, 0.25);
  EXPECT_EQ(run.time->waiting, 0.125);
  EXPECT_EQ(run.time->idle, 0.03125);
  ASSERT_TRUE(run.kept);
  EXPECT_TRUE(run.kept->best);
  EXPECT_EQ(run.kept->step, 15);
  EXPECT_EQ(run.kept->value, 1);
  EXPECT_EQ(run.reliability_split, "test");
  ASSERT_EQ(run.reliability.size(), 1U);
  EXPECT_EQ(run.reliability[0].predicted, 0.25);
  EXPECT_EQ(run.reliability[0].observed, 0.375);
  EXPECT_EQ(run.reliability[0].count, 3);
  EXPECT_EQ(run.metrics.evaluations.at(0).confusion.at(0).at(1), 2) << "of the step that is kept";
}

// 500 samples at 250 a second, and 1,000 at 500: four seconds in all, of which the evaluation after 750 comes
// after half a second of the second two.
TEST_F(DescribeRun, TakesFromTheMetricsWhatARunWithoutSummaryHas) {
  const RunDescription run = describe_run(run_.root);
  EXPECT_EQ(run.state, "unfinished");
  EXPECT_EQ(run.steps, 30) << "the last line of any kind";
  EXPECT_EQ(run.samples, 1500);
  EXPECT_EQ(run.seconds, 4);
  EXPECT_EQ(run.epochs, 1.5) << "by the plan";
  EXPECT_EQ(run.metrics.evaluations.at(0).table.seconds, (std::vector<double>{2.5, 4}));
  EXPECT_EQ(run.metrics.evaluations.at(0).confusion.at(0).at(1), 6) << "the last one";
  EXPECT_EQ(run.planned_number("samples per epoch"), 1000);
  EXPECT_EQ(run.planned_value("steps"), "60");
  EXPECT_EQ(run.planned_value("no row"), "");
}

TEST_F(DescribeRun, TakesColumnsClassesImportanceAndWarnings) {
  write_file_atomically(
      run_.schema(),
      R"({"columns":[{"name":"size","use":"feature","kind":"numeric","missing_count":1234,"min":-1,"max":2.5,"mean":0.125},)"
      R"({"name":"id","use":"ignore","kind":"numeric","missing_count":0},)"
      R"({"name":"y","use":"label","kind":"categorical","missing_count":0,"values":["a","b","c","d","e","f","g","h","i"]}]})");
  write_file_atomically(
      run_.importance(),
      R"({"measure":"auc","set":"test","baseline":0.75,"columns":[{"column":"size","importance":0.5}]})");
  std::string log = "2026-11-25 13:03:12.140 info 2 ranks on 1 host, 8 replicas, 1 thread\n";
  for (int i = 0; i < 12; ++i) log += "2026-11-25 13:03:12.140 warning number " + std::to_string(i) + "\n";
  write_file_atomically(run_.log(), log + "2026-11-25 13:03:12.140 warning number 3\n");
  const RunDescription run = describe_run(run_.root);
  using Cells = std::vector<std::string>;
  ASSERT_EQ(run.columns.size(), 3U);
  EXPECT_EQ(run.columns[0], (Cells{"size", "feature", "numeric", "1,234", "-1 to 2.5, mean 0.125"}));
  EXPECT_EQ(run.columns[1].back(), "");
  EXPECT_EQ(run.columns[2].back(), "a, b, c, d, e, f, g, h, ... (9 in all)");
  EXPECT_EQ(run.classes.size(), 9U);
  EXPECT_EQ(run.importance.measure, "auc");
  EXPECT_EQ(run.importance.set, "test");
  EXPECT_EQ(run.importance.baseline, 0.75);
  EXPECT_EQ(run.importance.columns.at(0).mean, 0.5);
  EXPECT_EQ(run.launch, "2 ranks on 1 host, 8 replicas, 1 thread");
  ASSERT_EQ(run.warnings.size(), 11U) << "each once, and ten of them";
  EXPECT_EQ(run.warnings[9], "number 9");
  EXPECT_EQ(run.warnings[10], "... and 2 more; log.txt has all");
}

}  // namespace
}  // namespace lockstep
