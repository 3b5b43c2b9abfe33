// The numbers of a page: of its charts, and of the table that has several runs side by side.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/json.h"
#include "lockstep/report/status_lines.h"
#include "report/report_charts.h"
#include "report/report_sections.h"
#include "support/error_text.h"

namespace lockstep {
namespace {

using nlohmann::json;
using test::expect_parts;

json chart_named(const std::vector<RunDescription>& runs, const std::string& title,
                 std::string* summary = nullptr) {
  for (const ChartPart& part : make_charts(runs, {})) {
    if (!part.title.starts_with(title)) continue;
    if (summary != nullptr) *summary = part.summary;
    return json::parse(part.json);
  }
  ADD_FAILURE() << "there is no chart '" << title << "'";
  return {};
}

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

TEST(ReportCharts, ACurveHasItsPointsByStepSamplesAndSeconds) {
  RunDescription run = run_named("runs/a");
  run.kept = KeptWeights{.best = true, .step = 20, .measure = "loss", .value = 1.25};
  std::string summary;
  const json chart = chart_named({run}, "Loss", &summary);
  ASSERT_EQ(chart["series"].size(), 2U);
  const json& train = chart["series"][0];
  EXPECT_EQ(train["label"], "train");
  EXPECT_EQ(train["step"], json({10, 20, 30, 40}));
  EXPECT_EQ(train["samples"], json({80, 160, 240, 320}));
  EXPECT_EQ(train["seconds"], json({2.5, 5, 7.5, 10}));
  EXPECT_EQ(train["y"], json({2, 1, 0.5, 0.75}));
  EXPECT_EQ(chart["series"][1]["label"], "validation");
  EXPECT_EQ(chart["series"][1]["y"], json({1.5, 1.25}));
  EXPECT_EQ(chart["kept"], json::parse(R"([{"run":0,"step":20,"samples":160,"seconds":5}])"));
  EXPECT_EQ(summary, "Loss: train from 2 to 0.75; validation from 1.5 to 1.25.");
}

TEST(ReportCharts, TimesAreInPercentAndOfTheRanksThatWaitLeastInSeconds) {
  RunDescription run = run_named("runs/a");
  run.time =
      TimeOfRun{.data = 0.0625, .compute = 0.5, .communication = 0.25, .waiting = 0.125, .idle = 0.0625};
  json chart = chart_named({run}, "Where the time of the steps went");
  const std::vector<std::pair<std::string, double>> shares{{"compute", 50},
                                                           {"communication", 25},
                                                           {"waiting for other ranks", 12.5},
                                                           {"data", 6.25},
                                                           {"idle for other stages", 6.25}};
  ASSERT_EQ(chart["series"].size(), shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    EXPECT_EQ(chart["series"][i]["label"], shares[i].first);
    EXPECT_EQ(chart["series"][i]["y"], json({shares[i].second}));
  }
  run.time->idle = 0;
  EXPECT_EQ(chart_named({run}, "Where the time of the steps went")["series"].size(), 4U);

  run.metrics.ranks.ranks = {{.host = "n1", .data = 1, .compute = 2, .exchange = 3, .waiting = 4},
                             {.host = "n2", .data = 5, .compute = 6, .exchange = 7, .waiting = 0.5}};
  chart = chart_named({run}, "Where the time of each rank went");
  EXPECT_EQ(chart["names"], json({"0 (n1)", "1 (n2)"}));
  const std::vector<json> seconds{{2, 6}, {3, 7}, {4, 0.5}, {1, 5}};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(chart["series"][i]["y"], seconds[i]) << i;
}

TEST(ReportCharts, StalenessAboveTheLastBarIsInIt) {
  RunDescription run = run_named("runs/a");
  WorkerHistory worker;
  worker.staleness.assign(40, 1);
  run.metrics.workers = {worker, {.staleness = {5, 7}}};
  const json chart = chart_named({run}, "Gradients by staleness");
  ASSERT_EQ(chart["names"].size(), 33U);
  EXPECT_EQ(chart["names"].back(), "32 and more");
  EXPECT_EQ(chart["series"][0]["y"].back(), 8) << "32 to 39";
  EXPECT_EQ(chart["series"][0]["y"][31], 1);
  EXPECT_EQ(chart["series"][1]["y"][0], 5);
  EXPECT_EQ(chart["series"][1]["y"][1], 7);
  EXPECT_EQ(chart["series"][1]["y"][2], 0);
}

TEST(ReportCharts, PredictionsAreThoseOfEvaluationJson) {
  RunDescription run = run_named("runs/a");
  run.predictions.split = "test";
  run.predictions.curves = {{.name = "1 (yes)",
                             .area = 0.8125,
                             .threshold = {0.9, 0.1},
                             .recall = {0.5, 1},
                             .false_positive_rate = {0.25, 1},
                             .precision = {0.75, 0.5}}};
  run.predictions.fits = {
      {.target = {1, 4, 2}, .prediction = {1.5, 3, 2}, .width = 2.5, .residuals = {1, 0, 2, 0, 4}}};
  run.reliability_split = "validation";
  run.reliability = {{.predicted = 0.25, .observed = 0.5, .count = 30}};
  std::string summary;
  json chart = chart_named({run}, "ROC curves", &summary);
  EXPECT_EQ(chart["series"][0]["x"], json({0, 0.25, 1})) << "from the corner on";
  EXPECT_EQ(chart["series"][0]["y"], json({0, 0.5, 1}));
  EXPECT_EQ(chart["series"][0]["label"], "class 1 (yes), area 0.8125");
  EXPECT_EQ(chart["series"][1]["style"], "guide");
  expect_parts(summary, {"class 1 (yes), area 0.8125; "});
  chart = chart_named({run}, "Precision-recall curves");
  EXPECT_EQ(chart["series"][0]["x"], json({0.5, 1}));
  EXPECT_EQ(chart["series"][0]["y"], json({0.75, 0.5}));
  chart = chart_named({run}, "Reliability");
  EXPECT_EQ(chart["series"][0]["label"], "validation");
  EXPECT_EQ(chart["series"][0]["x"], json({0.25}));
  EXPECT_EQ(chart["series"][0]["y"], json({0.5}));
  EXPECT_EQ(chart_named({run}, "Predictions by their probability")["series"][0]["y"], json({30}));
  chart = chart_named({run}, "Predicted against true");
  EXPECT_EQ(chart["series"][0]["x"], json({1, 4, 2}));
  EXPECT_EQ(chart["series"][0]["y"], json({1.5, 3, 2}));
  EXPECT_EQ(chart["series"][1]["x"], json({1, 4})) << "the diagonal";
  chart = chart_named({run}, "Residuals (prediction - target)");
  EXPECT_EQ(chart["names"], json({"-2", "-1", "0", "1", "2"})) << "middles of bins from -2.5 to 2.5";
  EXPECT_EQ(chart["series"][0]["y"], json({1, 0, 2, 0, 4}));
}

TEST(ReportCharts, ImportanceHasTheFirstTwentyColumns) {
  RunDescription run = run_named("runs/a");
  run.importance = {.measure = "auc", .set = "test", .baseline = 0.875};
  for (int i = 0; i < 25; ++i)
    run.importance.columns.push_back({fmt::format("c{}", i), 1.0 / (1 << (i % 8))});
  std::string summary;
  const json chart = chart_named({run}, "By how much the auc of the test set gets worse", &summary);
  ASSERT_EQ(chart["names"].size(), 20U);
  EXPECT_EQ(chart["names"][1], "c1");
  EXPECT_EQ(chart["series"][0]["y"][1], 0.5);
  expect_parts(summary, {"the auc is 0.875 with all columns"});
}

// The cells of a row of a table in HTML.
std::vector<std::string> cells(const std::string& html, const std::string& name) {
  std::vector<std::string> found;
  const std::size_t begin = html.find("<th scope=\"row\">" + name + "</th>");
  if (begin == std::string::npos) return found;
  const std::string row = html.substr(begin, html.find("</tr>", begin) - begin);
  for (std::size_t at = row.find("<td>"); at != std::string::npos; at = row.find("<td>", at + 4))
    found.push_back(row.substr(at + 4, row.find("</td>", at) - at - 4));
  return found;
}

TEST(Comparison, HasTheLastNumbersOfEachRun) {
  RunDescription a = run_named("runs/a");
  a.planned = {{"global batch", "8"}, {"each example seen", "2 times"}};
  a.kept = KeptWeights{.best = true, .step = 1234, .measure = "loss", .value = 1.25};
  a.metrics.workers = {{.staleness = {4, 2, 1}}, {.staleness = {1}}};
  RunDescription b{.name = "runs/b", .state = "failed", .steps = 5000, .samples = 20'000, .seconds = 90};
  b.metrics.evaluations = {{.split = "test", .table = losses({0.25})}};
  const std::string html = comparison_section({a, b});
  using Cells = std::vector<std::string>;
  EXPECT_EQ(cells(html, "state"), (Cells{"done", "failed"}));
  EXPECT_EQ(cells(html, "validation: Loss"), (Cells{"1.25", "-"}));
  EXPECT_EQ(cells(html, "test: Loss"), (Cells{"-", "0.25"}));
  EXPECT_EQ(cells(html, "train: Loss"), (Cells{"0.75", "-"}));
  EXPECT_EQ(cells(html, "steps"), (Cells{"40", "5,000"}));
  EXPECT_EQ(cells(html, "samples"), (Cells{"320", "20,000"}));
  EXPECT_EQ(cells(html, "samples of a step"), (Cells{"8", "4"}));
  EXPECT_EQ(cells(html, "global batch"), (Cells{"8", "-"}));
  EXPECT_EQ(cells(html, "each example seen (planned)"), (Cells{"2 times", "-"}));
  EXPECT_EQ(cells(html, "mean staleness"), (Cells{"0.5", "-"})) << "4 of 8 gradients together";
  EXPECT_EQ(cells(html, "kept step"), (Cells{"1,234", "-"}));
  EXPECT_EQ(cells(html, "time of training"), (Cells{"16.0 s", "1 m 30 s"}));
  EXPECT_EQ(cells(html, "samples a second"), (Cells{"20", "222"}));
  expect_parts(html, {"All keys have the same values."});
}

TEST(Sections, HaveTheScoresOfClassesAndTheSharesOfWorkers) {
  RunDescription run = run_named("runs/a");
  run.classes = {"ant", "bee"};
  run.metrics.evaluations[0].confusion = {{1000, 250}, {100, 900}};
  run.metrics.evaluations[0].confusion_step = 1234;
  const std::string classes = classes_section({run});
  using Cells = std::vector<std::string>;
  const std::string scores = classes.substr(classes.find("Each class:"));
  EXPECT_EQ(cells(scores, "0 (ant)"), (Cells{"1,250", "90.9 %", "80.0 %", "85.1 %"}));
  EXPECT_EQ(cells(scores, "1 (bee)"), (Cells{"1,000", "78.3 %", "90.0 %", "83.7 %"}));
  expect_parts(classes,
               {"Samples of the validation set after step 1,234: rows are true",
                "<td class=\"y\" style=\"--s:0.89\">1000</td><td class=\"n\" style=\"--s:0.45\">250</td>",
                "<td class=\"n\" style=\"--s:0.32\">100</td><td class=\"y\" style=\"--s:0.95\">900</td>"});
  run.metrics.workers = {{.computed = 1500, .samples = 3000, .dropped = 20},
                         {.computed = 400, .samples = 1000}};
  const std::string workers = workers_section({run});
  EXPECT_EQ(cells(workers, "0"), (Cells{"1,500", "3,000", "1.50", "20"}));
  EXPECT_EQ(cells(workers, "1"), (Cells{"400", "1,000", "0.50", "0"}));
  run.epochs = 2.5;
  run.planned = {{"steps", "60"},
                 {"samples", "480"},
                 {"epochs", "3"},
                 {"rows", "128"},
                 {"each example seen", "3.75 times"}};
  const std::string plan = plan_section({run});
  EXPECT_EQ(cells(plan, "steps"), (Cells{"60", "40"}));
  EXPECT_EQ(cells(plan, "samples"), (Cells{"480", "320"}));
  EXPECT_EQ(cells(plan, "epochs"), (Cells{"3", "2.5"}));
  EXPECT_EQ(cells(plan, "each example seen"), (Cells{"3.75 times", "2.5 times"}));
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
