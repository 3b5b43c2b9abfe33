// The page of `trainer report`: which points it shows, how large it becomes, and that names in it stay texts.
#include "lockstep/report/page/report_page.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/report/history/viewed_run.h"
#include "lockstep/report/tables/tables.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::report_page_test {
namespace {

using Json = nlohmann::json;
using test::expect_parts;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(KeptPoints, AreAllOfAShortSeries) {
  const std::vector<double> values{3, 1, 2};
  EXPECT_EQ(kept_points(values, 4), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(KeptPoints, HoldBothEndsAndEveryPeakOfALongSeries) {
  std::vector<double> values(1'000'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
  values[333'333] = 100;
  values[777'777] = -100;
  const std::vector<std::size_t> kept = kept_points(values, 2000);
  EXPECT_LE(kept.size(), std::size_t{2000});
  EXPECT_GT(kept.size(), std::size_t{1500});
  EXPECT_TRUE(std::ranges::is_sorted(kept));
  for (const std::size_t index :
       {std::size_t{0}, std::size_t{333'333}, std::size_t{777'777}, std::size_t{999'999}}) {
    EXPECT_TRUE(std::ranges::binary_search(kept, index)) << index;
  }
}

TEST(KeptPoints, LeaveAGapWhereThereAreNoNumbers) {
  std::vector<double> values(1000, 1.0);
  std::fill(values.begin() + 400, values.begin() + 600, kNaN);
  const std::vector<std::size_t> kept = kept_points(values, 100);
  const auto gaps = std::ranges::count_if(kept, [&](std::size_t i) { return std::isnan(values[i]); });
  EXPECT_GT(gaps, 5);
}

class Report : public testing::Test {
 protected:
  std::string metrics() const { return directory_ / "metrics.jsonl"; }

  static std::string train_line(Index step, const std::string& loss) {
    return fmt::format(
        R"({{"kind":"train","step":{},"epoch":{},"samples_seen":{},"loss":{},"accuracy":0.5,"lr":0.1,)"
        R"("samples_per_second":1000.0,"time":{{"data":0.1,"compute":0.9}}}})",
        step, static_cast<double>(step) / 100, step * 10, loss);
  }

  void write(const std::string& text) const { std::ofstream(metrics(), std::ios::binary) << text; }

  PageRun described(double kept_step = -1) const {
    PageRun run;
    run.name = "runs/a";
    run.record.state = RunState::kDone;
    run.metrics = read_metrics_history(metrics(), kept_step);
    return run;
  }

  static Json run_of(const PageRun& run) { return Json::parse(report_json({run})).at("runs").at(0); }

  const test::TemporaryDirectory directory_;
};

TEST_F(Report, OfAMillionStepsIsSmallAndHoldsTheExtremes) {
  std::ofstream out(metrics(), std::ios::binary);
  for (Index step = 10; step <= 1'000'000; step += 10) {
    out << train_line(step, step == 500'000 ? "77.5" : fmt::format("{}", 1 + 0.1 * std::sin(double(step))))
        << '\n';
  }
  out.close();
  const PageRun run = described();
  EXPECT_EQ(run.metrics.train.rows(), std::size_t{100'000});
  EXPECT_LE(report_page({run}).size(), kMaxPageBytes);
  const Json loss = run_of(run).at("curves").at(0);
  EXPECT_EQ(loss.at("points"), 100'000);
  EXPECT_LE(loss.at("y").size(), kMaxChartPoints);
  EXPECT_GT(loss.at("y").size(), kMaxChartPoints / 4);
  EXPECT_EQ(loss.at("step").size(), loss.at("y").size());
  EXPECT_EQ(std::ranges::count(loss.at("y"), Json(77.5)), 1);
  EXPECT_NEAR(loss.at("seconds").back().get<double>(), 10'000, 1);
}

TEST_F(Report, OfManyRunsIsSmallToo) {
  std::string text;
  for (Index step = 1; step <= 3000; ++step) text += train_line(step, "0.123456789") + '\n';
  write(text);
  const std::vector<PageRun> runs(12, described());
  EXPECT_LE(report_page(runs).size(), kMaxPageBytes);
  const std::vector<PageRun> too_many(100, described());
  expect_parts(test::error_text<ConfigError>([&] { report_page(too_many); }),
               {"100 runs", "too many", "at most 40"});
}

TEST_F(Report, SaysThatTheLastLineIsCutOff) {
  write(train_line(1, "0.5") + '\n' + train_line(2, "0.4").substr(0, 50));
  const PageRun run = described();
  EXPECT_EQ(run.metrics.train.rows(), std::size_t{1});
  expect_parts(run_of(run).at("faults").dump(), {"line 2, the last one, is cut off"});
}

TEST_F(Report, SaysWhichLineIsDamagedAndShowsTheOthers) {
  write("{}\n[1]\n" + train_line(2, "0.4") + "\nrubbish\n" + train_line(3, "0.3") + '\n');
  const PageRun run = described();
  EXPECT_EQ(run.metrics.train.rows(), std::size_t{2});
  expect_parts(run_of(run).at("faults").dump(),
               {"line 1: it has no step", "line 2: it is no object", "line 4: it is no JSON"});
}

TEST_F(Report, SaysWhereTheLossIsNoNumber) {
  write(train_line(100, "0.5") + '\n' + train_line(200, "null") + '\n');
  const Json run = run_of(described());
  EXPECT_EQ(run.at("curves").at(0).at("bad_step"), 200);
  EXPECT_EQ(run.at("curves").at(0).at("y"), Json::parse("[0.5,null]"));
}

TEST_F(Report, SaysWhyARunIsNotDone) {
  PageRun run = described();
  run.record.state = RunState::kFailed;
  run.record.reason = "rank 1: the <loss> is not finite";
  EXPECT_EQ(run_of(run).at("state"), "failed");
  EXPECT_EQ(run_of(run).at("reason"), "rank 1: the <loss> is not finite");
  EXPECT_FALSE(run_of(run).contains("kept"));
  run.record.state = RunState::kStoppedEarly;
  EXPECT_TRUE(run_of(run).contains("kept")) << "it is complete";
}

// The page holds names in its JSON alone, where no "<" is: what its script makes of them page_runs_test looks
// at.
TEST_F(Report, TakesNoNameForMarkup) {
  const std::string hostile = "</script><script>alert(1)</script>{{CHARTS}}<!--\x1b]0;x\x07\xff \xe2\x80\xae";
  const std::string shown = "</script><script>alert(1)</script>{{CHARTS}}<!--\\x1b]0;x\\x07\\xff \\u202e";
  write(fmt::format(R"({{"kind":"evaluation","split":{0},"step":1,"epoch":1,"samples_seen":1,{0}:1}})",
                    Json("</script><script>alert(1)</script>{{CHARTS}}").dump()) +
        '\n');
  PageRun run = described();
  run.name = run.record.reason = run.record.launch.algorithm = run.record.launch.precision = hostile;
  run.record.launch.hosts = run.record.launch.cores = run.record.plan.sentences = {hostile};
  run.config = {{hostile, hostile, ""}};
  run.record.plan.table = run.record.plan.model = {{hostile, hostile}};
  run.columns = {{hostile, hostile, hostile, hostile, hostile}};
  run.classes = {hostile, hostile};
  run.record.warnings = {hostile};
  run.metrics.evaluations[0].confusion = {{1, 2}, {3, 4}};
  run.metrics.ranks.ranks = {{.host = hostile}, {.host = hostile}};
  run.importance = {
      {"measure", hostile}, {"set", hostile}, {"columns", {{{"column", hostile}, {"importance", 1}}}}};
  run.record.result["evaluation"] = {{"split", hostile}, {"reliability", {{{"samples", 1}}}}};
  const nlohmann::ordered_json none = nlohmann::ordered_json::array();
  run.predictions = {{"split", hostile},
                     {"curves", none},
                     {"fits", none},
                     {"columns", {hostile}},
                     {"worst", {{{"file", hostile}, {"target", hostile}, {"cells", {hostile}}}}}};
  PageRun other = run;
  other.config[0].value = "other";
  const std::string empty = report_page({PageRun{}});
  for (const auto& runs : {std::vector{run}, std::vector{run, other}}) {
    const std::string json = report_json(runs);
    EXPECT_EQ(json.find('<'), std::string::npos);
    EXPECT_TRUE(std::ranges::all_of(json, [](char c) { return c >= ' ' && c <= '~'; }))
        << "one line of ASCII";
    const std::string page = report_page(runs);
    EXPECT_NE(page.find(json), std::string::npos) << "the page holds this JSON";
    EXPECT_EQ(std::ranges::count(page, '<'), std::ranges::count(empty, '<'))
        << "and nothing else of the runs";
    const Json first = Json::parse(json).at("runs").at(0);
    for (const char* name : {"name", "algorithm"}) EXPECT_EQ(first.at(name), shown) << name;
    EXPECT_EQ(first.at("config").at(0).at("key"), shown);
    expect_parts(first.at("confusion").at("classes").at(0).get<std::string>(),
                 {"0 (</script><script>alert(1)"});
  }
}

TEST_F(Report, IsTheSameForTheSameRun) {
  write(train_line(100, "0.5") + '\n');
  EXPECT_EQ(report_page({described()}), report_page({described()}));
}

TEST_F(Report, OfSeveralRunsNamesTheKeysThatDiffer) {
  write(train_line(100, "0.5") + '\n');
  PageRun a = described();
  a.config = {{"train.lr", "0.1", "0.01"}, {"train.epochs", "2", "1"}};
  PageRun b = a;
  b.name = "runs/b";
  b.config[0].value = "0.2";
  a.config.push_back({"run.dir", "runs/a", ""});
  b.config.push_back({"run.dir", "runs/b", ""});
  const Json json = Json::parse(report_json({a, b}));
  EXPECT_EQ(json.at("differing"), Json({"train.lr"})) << "where a run is kept makes no difference";
  EXPECT_EQ(json.at("runs").at(1).at("config").at(0).at("value"), "0.2");
  EXPECT_EQ(json.at("runs").at(1).at("short_name"), "b");
  b.config.clear();
  EXPECT_TRUE(Json::parse(report_json({a, b})).at("differing").empty()) << "a config that cannot be read";
}

TEST_F(Report, ShowsTheConfusionOfTheKeptStep) {
  std::string text;
  for (const Index step : {1, 2, 3}) {
    text += fmt::format(R"({{"kind":"evaluation","split":"validation","step":{0},"epoch":1,"samples_seen":1,)"
                        R"("loss":1,"confusion":[[{0}0,1],[0,5]]}})",
                        step) +
            '\n';
  }
  write(text);
  EXPECT_EQ(described(2).metrics.evaluations.at(0).confusion.at(0).at(0), 20);
  EXPECT_EQ(described().metrics.evaluations.at(0).confusion.at(0).at(0), 30);
}

TEST(ClassScores, AreThoseOfTheMatrix) {
  const std::vector<ClassScore> scores = class_scores({{8, 2, 0}, {4, 6, 0}, {0, 0, 0}});
  EXPECT_DOUBLE_EQ(scores[0].recall, 0.8);
  EXPECT_DOUBLE_EQ(scores[0].precision, 8.0 / 12);
  EXPECT_DOUBLE_EQ(scores[1].f1, 2 * 6.0 / (8 + 10));
  EXPECT_TRUE(std::isnan(scores[2].recall));
  EXPECT_EQ(scores[0].samples, 10);
}

TEST_F(Report, CsvHasAColumnForEachNumberAndALineForEachLine) {
  write(train_line(100, "null") + '\n' +
        R"({"kind":"evaluation","split":"test","step":100,"epoch":1.0,"samples_seen":1000,"a,\"b":0.25})" +
        "\nrubbish\n");
  std::string csv;
  const auto faults =
      write_metrics_csv({metrics()}, {"runs/a,b"}, [&](std::string_view text) { csv += text; });
  EXPECT_EQ(
      csv,
      "run,kind,split,step,epoch,samples_seen,loss,accuracy,lr,samples_per_second,time.data,time.compute,"
      "\"a,\"\"b\"\n"
      "\"runs/a,b\",train,,100,1,1000,,0.5,0.1,1000,0.1,0.9,\n"
      "\"runs/a,b\",evaluation,test,100,1,1000,,,,,,,0.25\n");
  ASSERT_EQ(faults.size(), std::size_t{1});
  expect_parts(faults[0], {metrics(), "line 3: it is no JSON"});
}

}  // namespace
}  // namespace lockstep::report_page_test
