// metrics.jsonl of a run that goes on: what of it is kept. And that the tables of the guide on output have
// all fields of metrics.jsonl and summary.json.
#include "lockstep/report/live/run_output.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "lockstep/base/embedded_text.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/report/history/metrics_history.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::metrics_file_test {

// What is logged meanwhile.
class Log {
 public:
  Log() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TrainMetrics metrics_of(Index step) {
  TrainMetrics metrics;
  metrics.progress.steps = step;
  return metrics;
}

class MetricsFileTest : public testing::Test {
 protected:
  // The file after a run has gone on behind `keep` bytes of `text`, with a line of step 9.
  std::string rest_of(const std::string& text, std::size_t keep) {
    write_file_atomically(path_, text);
    const Log log;
    {
      MetricsFile file(path_, static_cast<Index>(keep));
      file.on_train_metrics(metrics_of(9));
      EXPECT_EQ(file.written_bytes(), file_bytes(path_));
      EXPECT_FALSE(file.failed());
    }
    warning_ = log.text();
    const std::string found = read_file(path_);
    const std::size_t added = found.find(R"({"kind":"train","step":9)");
    EXPECT_NE(added, std::string::npos) << found;
    return found.substr(0, added);
  }
  const test::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "metrics.jsonl";
  const std::string lines_ = "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n";
  std::string warning_;
};

TEST_F(MetricsFileTest, GoesOnBehindTheLinesOfTheCheckpoint) {
  EXPECT_EQ(rest_of(lines_, lines_.size()), lines_);
  EXPECT_EQ(rest_of(lines_ + "{\"step\":4}\n", lines_.size()), lines_);
  EXPECT_EQ(rest_of(lines_, 0), "");
  EXPECT_EQ(warning_, "");
}

TEST_F(MetricsFileTest, KeepsWholeLinesOfAFileThatWasCutOffAndSaysWhatIsMissing) {
  const std::string two = lines_.substr(0, 22);
  EXPECT_EQ(rest_of(lines_.substr(0, 27), 44), two);
  test::expect_parts(warning_, {"22 of the 44 bytes", "lines after step 2"});
  EXPECT_EQ(rest_of(two, 44), two);
  test::expect_parts(warning_, {"22 of the 44 bytes", "lines after step 2"});
  EXPECT_EQ(rest_of("{\"ste", 44), "");
  test::expect_parts(warning_, {"0 of the 44 bytes", "the lines are missing"});
  EXPECT_EQ(rest_of("no json\n{", 44), "no json\n");
}

// As after a line was taken out by hand, and as after a crash of the machine.
TEST_F(MetricsFileTest, KeepsWholeLinesWhereTheCheckpointEndsWithinOneOrThereAreZeros) {
  EXPECT_EQ(rest_of(lines_ + lines_, 40), lines_);
  test::expect_parts(warning_, {"33 of the 40 bytes", "lines after step 3"});
  EXPECT_EQ(rest_of(lines_ + std::string(20, '\0') + "\n" + lines_, 60), lines_);
  test::expect_parts(warning_, {"33 of the 60 bytes"});
}

TEST_F(MetricsFileTest, AMissingFileIsMissed) {
  const Log log;
  EXPECT_EQ(MetricsFile(path_, 44).written_bytes(), 0);
  test::expect_parts(log.text(), {"0 of the 44 bytes"});
}

TEST_F(MetricsFileTest, EachNumberStandsUnderItsName) {
  {
    MetricsFile file(path_);
    TrainMetrics train = metrics_of(7);
    train.progress = {.steps = 7, .samples = 70, .epochs = 0.75};
    train.loss = 0.5;
    train.accuracy = 0.25;
    train.lr = 0.125;
    train.samples_per_second = 1000;
    train.update = UpdateStatistics{.gradient_norm = 3, .weight_norm = 4};
    train.time = {.data = 0.01,
                  .compute = 0.02,
                  .forward = 0.03,
                  .optimizer = 0.04,
                  .communication = 0.05,
                  .waiting = 0.06,
                  .idle = 0.07,
                  .hidden = 0.08};
    file.on_train_metrics(train);
    EvalMetrics evaluation;
    evaluation.split = Split::kValidation;
    evaluation.progress = {.steps = 9, .samples = 90, .epochs = 1.5};
    evaluation.samples = 11;
    evaluation.loss = 0.375;
    evaluation.accuracy = 0.625;
    evaluation.top_k_accuracy = 0.875;
    evaluation.top_k = 2;
    evaluation.classes = 2;
    evaluation.confusion = {1, 2, 3, 4};
    evaluation.others = {{"auc", 0.75}, {"r2", std::nullopt}};
    evaluation.seconds = 1.25;
    evaluation.sample = "In the beginning";
    file.on_evaluation(evaluation);
    evaluation.sample.clear();
    evaluation.accuracy.reset();
    evaluation.top_k_accuracy.reset();
    evaluation.confusion.clear();
    evaluation.others.clear();
    file.on_evaluation(evaluation);
    RankTimes times{
        .ranks = {{.host = "n1", .data = 1, .compute = 2, .exchange = 3, .waiting = 4, .delay = 5},
                  {.host = "n2", .to_best = 1.5, .to_own = 1.25, .slowness = Slowness::kChronic}},
        .seconds = 10,
        .windows = 6};
    times.ranks[0].slow_windows = 2;
    file.on_ranks(times, train.progress);
  }
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_file(path_));
  for (std::string line; std::getline(text, line);) lines.push_back(parse_json<nlohmann::json>(line));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0],
            parse_json<nlohmann::json>(
                R"({"kind":"train","step":7,"epoch":0.75,"samples_seen":70,"loss":0.5,"accuracy":0.25,)"
                R"("lr":0.125,"samples_per_second":1000.0,"gradient_norm":3.0,"weight_norm":4.0,)"
                R"("time":{"data":0.01,"compute":0.02,"forward":0.03,"optimizer":0.04,)"
                R"("communication":0.05,"waiting":0.06,"idle":0.07,"hidden":0.08}})"));
  EXPECT_EQ(lines[1],
            parse_json<nlohmann::json>(
                R"({"kind":"evaluation","split":"validation","step":9,"epoch":1.5,"samples_seen":90,)"
                R"("samples":11,"loss":0.375,"accuracy":0.625,"top_k":2,"top_k_accuracy":0.875,"auc":0.75,)"
                R"("r2":null,"positive":"1","confusion":[[1,2],[3,4]],"seconds":1.25,)"
                R"("sample":"In the beginning"})"));
  EXPECT_EQ(lines[2],
            parse_json<nlohmann::json>(
                R"({"kind":"evaluation","split":"validation","step":9,"epoch":1.5,"samples_seen":90,)"
                R"("samples":11,"loss":0.375,"positive":"1","seconds":1.25})"));
  const nlohmann::json& ranks = lines[3];
  const std::vector<std::pair<const char*, std::vector<double>>> numbers{
      {"data", {1, 0}},  {"compute", {2, 0}},   {"exchange", {3, 0}},  {"waiting", {4, 0}},
      {"delay", {5, 0}}, {"to_best", {1, 1.5}}, {"to_own", {1, 1.25}}, {"slow_windows", {2, 0}}};
  for (const auto& [name, values] : numbers) EXPECT_EQ(ranks[name], nlohmann::json(values)) << name;
  EXPECT_EQ(ranks["host"], nlohmann::json({"n1", "n2"}));
  EXPECT_EQ(ranks["slow"], nlohmann::json({"", "chronic"}));
  EXPECT_EQ(ranks["seconds"], 10);
  EXPECT_EQ(ranks["windows"], 6);
}

TEST_F(MetricsFileTest, LinesOfADeletedFileAreLostAndItSaysSo) {
  const Log log;
  MetricsFile file(path_);
  file.on_train_metrics(metrics_of(1));
  EXPECT_FALSE(file.failed());
  std::filesystem::remove(path_);
  file.on_train_metrics(metrics_of(2));
  EXPECT_TRUE(file.failed());
  test::expect_parts(log.text(), {"it was deleted"});
}

using Names = std::set<std::string>;

Names names_in(const nlohmann::json& object) {
  Names names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

// Every number that a run writes, with its one definition: the tables of the guide on output, each with its
// mark above it, `<!-- numbers: training -->`, and an empty line below.
std::string number_tables() {
  std::string tables;
  bool inside = false;
  std::istringstream lines{std::string(embedded_text("guides/output.md"))};
  for (std::string line; std::getline(lines, line);) {
    inside = inside || line.starts_with("<!-- numbers: ");
    if (inside) tables += line + "\n";
    inside = inside && !line.empty();
  }
  return tables;
}

// The fields of some tables of the guide, together. They stand in the first column, each in backticks; what
// does not begin with one is a number of the log alone.
Names listed(std::initializer_list<std::string_view> tables) {
  Names names;
  bool wanted = false;
  std::istringstream lines(number_tables());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("<!--")) {
      wanted = std::ranges::any_of(tables, [&line](std::string_view table) {
        return line == fmt::format("<!-- numbers: {} -->", table);
      });
    }
    if (!wanted || !line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find(" |"));
    for (std::size_t at = cell.find('`'); at != std::string::npos;) {
      const std::size_t end = cell.find('`', at + 1);
      EXPECT_TRUE(names.insert(cell.substr(at + 1, end - at - 1)).second) << line;
      at = cell.find('`', end + 1);
    }
  }
  return names;
}

RankTimes times_of_two_ranks() {
  return {.ranks = {{.host = "a"}, {.host = "b"}}, .hosts = {{.host = "a", .ranks = 1}}};
}

EvalMetrics full_evaluation() {
  EvalMetrics metrics;
  metrics.accuracy = metrics.top_k_accuracy = 0.5;
  metrics.classes = 2;
  metrics.confusion = {1, 0, 0, 1};
  return metrics;
}

// Each line with all that it can have.
TEST_F(MetricsFileTest, TheGuideHasEachFieldOfALineAndNoOther) {
  {
    MetricsFile file(path_);
    TrainMetrics training;
    training.accuracy = 1;
    training.update = UpdateStatistics{};
    training.time.idle = 0.1;
    training.time.hidden = 0.5;
    file.on_train_metrics(training);
    EvalMetrics evaluation = full_evaluation();
    evaluation.sample = "In the beginning";
    file.on_evaluation(evaluation);
    file.on_workers({.totals = {}, .workers = {{}}}, {});
    RankTimes times = times_of_two_ranks();
    times.load = 1;
    file.on_ranks(times, {});
  }
  std::istringstream lines(read_file(path_));
  std::map<std::string, nlohmann::json> by_kind;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    by_kind[json.at("kind").get<std::string>()] = json;
  }
  EXPECT_EQ(names_in(by_kind["train"]), listed({"common", "training"}));
  EXPECT_EQ(names_in(by_kind["train"]["time"]), listed({"time"}));
  EXPECT_EQ(names_in(by_kind["evaluation"]), listed({"common", "evaluation"}));
  Names of_workers = names_in(by_kind["workers"]);
  of_workers.merge(names_in(by_kind["workers"]["workers"][0]));
  EXPECT_EQ(of_workers, listed({"common", "workers"}));
  Names of_ranks = names_in(by_kind["ranks"]);
  EXPECT_EQ(of_ranks.erase("host"), 1U);  // told with "hosts"
  EXPECT_EQ(of_ranks, listed({"common", "ranks"}));
}

TEST_F(MetricsFileTest, TheGuideHasEachFieldOfTheSummaryAndNoOther) {
  TrainingResult result;
  result.ranks = times_of_two_ranks();
  result.early = "no better";
  result.calibration = Calibration{};
  result.skipped_steps = result.single_value_steps = result.repairs = 1;
  result.evaluations = {full_evaluation()};
  result.last = full_evaluation();
  result.workers = WorkersReport{};
  const nlohmann::json summary = summary_json({.result = result,
                                               .algorithm = "ring",
                                               .config = "0",
                                               .hosts = {"a"},
                                               .threshold = ChosenThreshold{},
                                               .lost = {"log.txt"}});
  EXPECT_EQ(names_in(summary), listed({"summary"}));
}

TEST(EvaluationJson, HasWhatWasMeasuredAndNoMore) {
  EvalMetrics metrics;
  metrics.split = Split::kTest;
  metrics.progress = {.steps = 10, .samples = 80, .epochs = 2.5};
  metrics.samples = 7;
  metrics.loss = 0.5;
  metrics.seconds = 1.5;
  const std::string begin =
      R"({"kind":"evaluation","split":"test","step":10,"epoch":2.5,"samples_seen":80,"samples":7,)";
  EXPECT_EQ(evaluation_json(metrics).dump(), begin + R"("loss":0.5,"seconds":1.5})");
  metrics.positions = 21;
  metrics.accuracy = 0.75;
  metrics.top_k = 3;
  metrics.top_k_accuracy = 0.875;
  metrics.others = {{.name = "r2", .value = 0.25}, {.name = "mcc", .value = std::nullopt}};
  metrics.classes = 2;
  metrics.confusion = {1, 2, 3, 4};
  EXPECT_EQ(evaluation_json(metrics).dump(),
            begin + R"("positions":21,"loss":0.5,"accuracy":0.75,"top_k":3,"top_k_accuracy":0.875,"r2":0.25,)"
                    R"("mcc":null,"positive":"1","confusion":[[1,2],[3,4]],"seconds":1.5})");
}

// Each line of them says what the number means.
TEST(NumberTables, HaveTheirMarkAndAMeaningEach) {
  std::istringstream lines(number_tables());
  int tables = 0;
  for (std::string line; std::getline(lines, line);) {
    tables += line.starts_with("<!-- numbers: ") ? 1 : 0;
    EXPECT_TRUE(line.empty() || line.starts_with("<!-- numbers: ") || line.starts_with("|")) << line;
    EXPECT_TRUE(!line.starts_with("| `") || !line.ends_with("| |")) << line;
  }
  EXPECT_EQ(tables, 7);
}

}  // namespace lockstep::metrics_file_test
