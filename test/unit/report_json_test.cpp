// The numbers that the page shows, as JSON.
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/report/page/report_page.h"
#include "support/temporary_directory.h"

namespace lockstep::report_json_test {
namespace {

using Json = nlohmann::json;

Json run_of(const PageRun& run) {
  return parse_json<Json>(report_json({run})).at("runs").at(0);
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

PageRun run_named(const std::string& name) {
  PageRun run;
  run.name = name;
  run.record.state = RunState::kDone;
  run.record.progress = {.steps = 40, .samples = 320, .epochs = 2.5};
  run.record.seconds = 16;
  run.metrics.train = losses({2, 1, 0.5, 0.75});
  run.metrics.evaluations = {{.split = "validation", .table = losses({1.5, 1.25})}};
  return run;
}

TEST(ReportJson, ACurveHasItsPointsByStepSamplesAndSeconds) {
  PageRun run = run_named("runs/a");
  run.record.kept = {.best = true, .step = 20};
  run.metrics.train.columns.push_back({"time.data", {1, 1, 1, 1}});
  run.metrics.train.columns.push_back({"gradient_norm", {NAN, 0.1234567891, NAN, 3}});
  const Json json = run_of(run);
  EXPECT_EQ(json["name"], "runs/a");
  EXPECT_EQ(json["short_name"], "a");
  ASSERT_EQ(json["curves"].size(), 3U) << "times are no curve";
  EXPECT_EQ(json["curves"][0], Json::parse(R"({"measure":"loss","split":"train","points":4,
    "step":[10,20,30,40],"samples":[80,160,240,320],"seconds":[2.5,5,7.5,10],"y":[2,1,0.5,0.75]})"));
  EXPECT_EQ(json["curves"][1]["measure"], "gradient_norm");
  EXPECT_EQ(json["curves"][1]["step"], Json({20, 40})) << "where it was measured";
  EXPECT_EQ(json["curves"][1]["y"], Json::parse("[0.123456789,3]"));
  EXPECT_EQ(json["curves"][2]["split"], "validation");
  EXPECT_EQ(json["curves"][2]["y"], Json::parse("[1.5,1.25]"));
  EXPECT_EQ(json["kept"], Json::parse(R"({"step":20,"best":true,"samples":160,"seconds":5})"));
}

TEST(ReportJson, SamplesAreSpreadOverTheSteps) {
  PageRun run = run_named("a");
  for (int step = 1; step <= 500; ++step)
    run.metrics.texts.push_back({.step = 10.0 * step, .text = "line\none\x1b" + std::string(3000, 'x')});
  const Json texts = run_of(run)["texts"];
  EXPECT_LE(texts.size(), 20U);
  EXPECT_EQ(texts.front()["step"], 10);
  EXPECT_EQ(texts.back()["step"], 5000);
  const auto text = texts.back()["text"].get<std::string>();
  EXPECT_TRUE(text.starts_with("line\none\\x1bxxx")) << text;
  EXPECT_LT(text.size(), 2100U);
}

TEST(ReportJson, TheKeptWeightsHaveTheSamplesOfTheirEvaluation) {
  PageRun run = run_named("runs/a");
  run.record.kept = {.best = true, .step = 20};
  run.record.progress.samples = 290;  // the last batch of an epoch is smaller
  EXPECT_EQ(run_of(run)["kept"]["samples"], 160);
  run.metrics.evaluations.clear();
  EXPECT_EQ(run_of(run)["kept"], Json::parse(R"({"step":20,"best":true})")) << "no line has it";
  run.record.kept = {.step = 40};
  EXPECT_EQ(run_of(run)["kept"]["samples"], 290) << "the run's own";
}

TEST(ReportJson, TheResultSaysWhichWayEachMeasureIsBetter) {
  PageRun run = run_named("runs/a");
  EXPECT_FALSE(run_of(run).contains("best"));
  run.record.figures["test"] = {.step = 20, .values = {{"loss", 0.5}, {"auc", 0.75}}};
  run.record.deciding["validation"] = {.split = "validation", .measure = "auc", .value = 0.875, .step = 20};
  run.record.scaled_label = "price: standard";
  const Json json = run_of(run);
  EXPECT_EQ(json["results"],
            Json::parse(R"([{"name":"test","step":20,"values":[["loss",0.5,true],["auc",0.75,false]]}])"));
  EXPECT_EQ(json["best"],
            Json::parse(R"({"split":"validation","measure":"auc","value":0.875,"smaller_is_better":false})"));
  EXPECT_EQ(json["scaled_label"], "price: standard");
}

TEST(ReportJson, TimesAreSharesAndOfTheRanksThatWaitLeastSeconds) {
  PageRun run = run_named("runs/a");
  run.record.result["time"] = {
      {"data", 0.0625}, {"compute", 0.5}, {"communication", 0.25}, {"waiting", 0.125}, {"idle", 0.03125}};
  for (int rank = 0; rank < 70; ++rank)
    run.metrics.ranks.ranks.push_back({.host = fmt::format("n{}", rank), .waiting = 70.0 - rank});
  run.metrics.ranks.ranks[69] = {.host = "n1", .data = 1, .compute = 2, .exchange = 3, .waiting = 0.5};
  const Json json = run_of(run);
  EXPECT_EQ(
      json["time"],
      Json::parse(R"({"compute":0.5,"communication":0.25,"waiting":0.125,"data":0.0625,"idle":0.03125})"));
  EXPECT_EQ(json["ranks"]["count"], 70);
  ASSERT_EQ(json["ranks"]["shown"].size(), 64U);
  EXPECT_EQ(json["ranks"]["shown"][0]["rank"], 6);
  EXPECT_EQ(json["ranks"]["shown"][63],
            Json::parse(R"({"rank":69,"host":"n1","compute":2,"exchange":3,"waiting":0.5,"data":1})"));
}

TEST(ReportJson, ForecastsHaveTheErrorsOfEachStep) {
  PageRun run = run_named("runs/a");
  EXPECT_EQ(run_of(run)["forecasts"], Json::array());
  run.record.forecasts = nlohmann::ordered_json::parse(
      R"({"test":[{"name":"the model","mean_absolute_error":2.5,"by_step":[2,null]},)"
      R"({"name":"repeating the last value","mean_absolute_error":4,"squared_error":1,"by_step":[3,5]},)"
      R"({"name":"of another program","by_step":3},7]})");
  EXPECT_EQ(
      run_of(run)["forecasts"],
      Json::parse(R"([{"split":"test","name":"the model","by_step":[2,null],"mean_absolute_error":2.5},)"
                  R"({"split":"test","name":"repeating the last value","by_step":[3,5],)"
                  R"("mean_absolute_error":4}])"));
  run.record.forecasts["test"][0]["by_step"] = std::vector<double>(9000, 1);
  EXPECT_EQ(run_of(run)["forecasts"].size(), 1U) << "too long for a page";
}

TEST(ReportJson, SlowRanksHaveWhatTheyCost) {
  PageRun run = run_named("runs/a");
  EXPECT_EQ(run_of(run)["slow"], Json::array());
  run.metrics.ranks.seconds = 200;
  run.metrics.ranks.windows = 10;
  run.metrics.ranks.ranks = {{.host = "n1"},
                             {.host = "n2",
                              .delay = 25,
                              .to_best = 1.5,
                              .to_own = 1.25,
                              .slow_windows = 9,
                              .slowness = Slowness::kChronic}};
  EXPECT_EQ(run_of(run)["slow"],
            Json::parse(
                R"([{"rank":1,"host":"n2","slowness":"chronic","to_best":1.5,"to_own":1.25,"cost":0.125}])"));
  run.metrics.ranks.seconds = 20;
  EXPECT_EQ(run_of(run)["slow"], Json::array()) << "a run of seconds";
}

TEST(ReportJson, WorkersHaveTheFateOfTheirGradients) {
  PageRun run = run_named("runs/a");
  run.metrics.workers = {{.computed = 1500, .samples = 3000, .dropped = 20, .staleness = {5, 7}}};
  EXPECT_EQ(run_of(run)["workers"],
            Json::parse(R"([{"computed":1500,"samples":3000,"dropped":20,"staleness":[5,7]}])"));
}

PageRun predicted_run(const std::string& name) {
  PageRun run = run_named(name);
  nlohmann::ordered_json file{{"split", "test"},
                              {"samples", 1234},
                              {"curves",
                               {{{"class", "yes"},
                                 {"area", 0.8125},
                                 {"threshold", {0.9, 0.1}},
                                 {"recall", {0.5, 1}},
                                 {"false_positive_rate", {0.25, 1}},
                                 {"precision", {0.75, 0.5}}}}},
                              {"fits",
                               {{{"target", {1, 4, 2}},
                                 {"prediction", {1.5, 3, 2}},
                                 {"residual_width", 2.5},
                                 {"residuals", {1, 0, 2, 0, 4}}}}},
                              {"columns", {"size"}}};
  const nlohmann::ordered_json worst{{"loss", nullptr}, {"record", 17},     {"file", "a.csv"},
                                     {"target", "no"},  {"prediction", ""}, {"cells", {"5"}}};
  for (int i = 0; i < 20; ++i) file["worst"].push_back(worst);
  file["worst"][0]["picture"] = {{"width", 2}, {"height", 1}, {"channels", 1}, {"pixels", "AP8="}};
  run.predictions = read_shown_predictions(file.dump());
  return run;
}

TEST(ReportJson, PredictionsAreThoseOfEvaluationJson) {
  PageRun run = predicted_run("runs/a");
  run.record.result["evaluation"] = {
      {"split", "validation"}, {"reliability", {{{"predicted", 0.25}, {"observed", 0.5}, {"samples", 30}}}}};
  const Json json = run_of(run);
  EXPECT_EQ(json["reliability"],
            Json::parse(R"({"split":"validation","predicted":[0.25],"observed":[0.5],"samples":[30]})"));
  const Json& shown = json["predictions"];
  EXPECT_EQ(shown["split"], "test");
  EXPECT_EQ(shown["samples"], 1234);
  EXPECT_EQ(shown["curves"], Json::parse(R"([{"class":"yes","area":0.8125,"recall":[0.5,1],
    "false_positive_rate":[0.25,1],"precision":[0.75,0.5]}])"));
  EXPECT_EQ(shown["fits"],
            Json::parse(R"([{"samples":3,"target":[1,4,2],"prediction":[1.5,3,2],"residual_width":2.5,
    "residuals":[1,0,2,0,4]}])"));
  EXPECT_EQ(shown["columns"], Json({"size"}));
  ASSERT_EQ(shown["worst"].size(), 20U);
  EXPECT_EQ(shown["worst"][1], Json::parse(R"({"record":17,"file":"a.csv","loss":null,"target":"no",
    "prediction":"","cells":["5"]})"));
  EXPECT_EQ(shown["worst"][0]["picture"],
            Json::parse(R"({"width":2,"height":1,"channels":1,"pixels":"AP8="})"));
}

// Curves of several classes would hide those of the other runs; and many runs share the room of the page.
TEST(ReportJson, OfSeveralRunsHasLessOfEach) {
  PageRun run = predicted_run("runs/a");
  Json json = parse_json<Json>(report_json({run, run}));
  EXPECT_EQ(json["runs"][1]["predictions"]["curves"].size(), 1U);
  run.predictions["curves"].push_back(nlohmann::ordered_json(run.predictions["curves"][0]));
  EXPECT_EQ(run_of(run)["predictions"]["curves"].size(), 2U);
  json = parse_json<Json>(report_json({run, run}));
  EXPECT_EQ(json["runs"][1]["predictions"]["curves"].size(), 0U);
  for (auto& each : run.predictions["worst"]) each["cells"] = std::vector(20, std::string(190, 'x'));
  json = parse_json<Json>(report_json(std::vector(30, run)));
  EXPECT_LT(json["runs"][29]["predictions"]["worst"].size(), 20U);
  EXPECT_GE(json["runs"][29]["predictions"]["worst"].size(), 5U);
}

TEST(ReportJson, ImportanceHasTheFirstTwentyColumns) {
  const test::TemporaryDirectory directory;
  nlohmann::ordered_json file{{"measure", "auc"}, {"set", "test"}, {"baseline", 0.875}};
  for (int i = 0; i < 25; ++i)
    file["columns"].push_back({{"column", fmt::format("c{}", i)}, {"importance", 1.0 / (1 << (i % 8))}});
  write_file_atomically(RunDirectory{directory.path()}.importance(), file.dump());
  const PageRun run = read_page_run(run_named("runs/a"), {directory.path()});
  const Json importance = run_of(run)["importance"];
  EXPECT_EQ(importance["measure"], "auc");
  EXPECT_EQ(importance["set"], "test");
  EXPECT_EQ(importance["baseline"], 0.875);
  ASSERT_EQ(importance["columns"].size(), 20U);
  EXPECT_EQ(importance["columns"][1], Json::parse(R"({"column":"c1","importance":0.5})"));
}

TEST(ReportJson, HasTheScoresOfClasses) {
  PageRun run = run_named("runs/a");
  run.classes = {"ant", "bee"};
  run.record.positive = "bee";
  run.metrics.evaluations[0].confusion = {{1000, 250}, {0, 0}};
  run.metrics.evaluations[0].confusion_step = 1234;
  const Json confusion = run_of(run)["confusion"];
  EXPECT_EQ(run_of(run)["positive"], "bee");
  EXPECT_EQ(confusion["split"], "validation");
  EXPECT_EQ(confusion["step"], 1234);
  EXPECT_EQ(confusion["classes"], Json({"0 (ant)", "1 (bee)"}));
  EXPECT_EQ(confusion["counts"], Json::parse("[[1000,250],[0,0]]"));
  EXPECT_EQ(confusion["scores"][0],
            Json::parse(R"({"samples":1250,"precision":1,"recall":0.8,"f1":0.8888888888888888})"));
  EXPECT_EQ(confusion["scores"][1], Json::parse(R"({"samples":0,"precision":0,"recall":null,"f1":0})"));
  const auto at_threshold = [&](const std::string& split, const std::string& counts) {
    run.record.result["evaluation"] = Json::parse(fmt::format(
        R"({{"split":"{}","threshold":{{"probability":0.3,"f1":null,"recall":"<b>","confusion":{}}}}})",
        split, counts));
    return run_of(run)["confusion"].value("threshold", Json());
  };
  EXPECT_EQ(at_threshold("validation", "[[900,350],[0,1]]"),
            Json::parse(R"({"counts":[[900,350],[0,1]],"probability":0.3,"accuracy":null,"precision":null,
                            "recall":null,"f1":null})"));
  for (const char* counts : {"[[1,2]]", "[[1,2],[3]]", R"([[1,2],[3,"4"]])", "7"})
    EXPECT_TRUE(at_threshold("validation", counts).is_null()) << counts;
  EXPECT_TRUE(at_threshold("test", "[[900,350],[0,1]]").is_null()) << "of another set";
}

TEST(ReportJson, HasThePlanAndThePlaces) {
  PageRun run = run_named("runs/a");
  run.record.plan = {.rows = 128,
                     .steps = 60,
                     .times_each_seen = 3.75,
                     .table = {{"steps", "60"}, {"rows", "128"}},
                     .sentences = {"Each step is one."},
                     .model = {{"layer", "output"}, {"0 relu", "4"}}};
  run.record.launch.hosts.assign(3000, "n1");
  run.record.launch.cores.assign(3000, "0-3");
  const Json json = run_of(run);
  EXPECT_EQ(json["plan"], Json::parse(R"([["steps","60"],["rows","128"]])"));
  EXPECT_EQ(json["planned"], Json::parse(R"({"ranks":0,"servers":0,"rows":128,"parameters":0,"steps":60,
    "samples":0,"epochs":0,"global_batch":0,"epoch_samples":0,"times_each_seen":3.75})"));
  EXPECT_EQ(json["sentences"], Json::parse(R"(["Each step is one."])"));
  EXPECT_EQ(json["model"], Json::parse(R"([["layer","output"],["0 relu","4"]])"));
  EXPECT_EQ(json["placement"].size(), 2001U);
  EXPECT_EQ(json["placement"][1], Json::parse(R"(["1","n1","0-3"])"));
  EXPECT_EQ(json["placement"].back()[0], "...");
  EXPECT_EQ(json["steps"], 40);
  EXPECT_EQ(json["epochs"], 2.5);
  EXPECT_EQ(json["seconds"], 16);
}

}  // namespace
}  // namespace lockstep::report_json_test
