// The configs of real tables learn what they claim: they beat what simpler models reach on the same rows.
#include "lockstep/base/types.h"
#include "support/trainer_runs.h"

namespace lockstep::test::real_data_test {
namespace {

using Json = nlohmann::json;

// A run of configs/NAME.toml on the tables of fetch-data.
struct Trained {
  Json evaluation;    // the last
  std::string model;  // the file
};

Trained train(int ranks, const std::string& config, const std::string& table) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  succeed(ranks, fmt::format("--config {0}/configs/{1}.toml --run.dir {2} --data.train {3}/{4}_train.csv "
                             "--data.test {3}/{4}_test.csv",
                             LOCKSTEP_SOURCE_DIR, config, run, LOCKSTEP_REAL_DATA, table));
  Json evaluation = Json::parse(read_file(run + "/summary.json")).at("evaluation");
  evaluation.erase("seconds");
  return {.evaluation = evaluation, .model = read_file(run + "/model.safetensors")};
}

Json evaluate(const std::string& config, const std::string& table, Index samples) {
  Json evaluation = train(2, config, table).evaluation;
  EXPECT_EQ(evaluation.at("samples"), samples);
  return evaluation;
}

TEST(RealData, WideAndDeepBeatsLogisticRegressionOnEarnings) {
  const Json evaluation = evaluate("cpssw8_wide_deep_allreduce", "cpssw8", 12'279);
  EXPECT_GT(evaluation.at("accuracy"), 0.720);  // logistic regression: 0.716
  EXPECT_GT(evaluation.at("auc"), 0.770);       // 0.764
  EXPECT_LT(evaluation.at("log_loss"), 0.540);  // 0.547
}

TEST(RealData, APerceptronFindsThePriceOfDiamonds) {
  const Json evaluation = evaluate("diamonds_mlp_allreduce", "diamonds", 10'788);
  EXPECT_GT(evaluation.at("r2"), 0.985);  // linear regression: 0.970
  EXPECT_LT(evaluation.at("mean_absolute_error"), 0.09);
}

TEST(RealData, APerceptronBeatsLogisticRegressionOnTheCensus) {
  const Json evaluation = evaluate("census_mlp_allreduce", "fertility", 50'930);
  EXPECT_GT(evaluation.at("auc"), 0.616);  // logistic regression: 0.611
  EXPECT_LT(evaluation.at("log_loss"), 0.642);
}

TEST(RealData, ALinearMapForecastsElectricityBetterThanTheWeekBefore) {
  const TemporaryDirectory directory;
  succeed(2, fmt::format(
                 "--config {}/configs/taylor_linear_allreduce.toml --run.dir {} --data.train {}/taylor.csv",
                 LOCKSTEP_SOURCE_DIR, directory / "run", LOCKSTEP_REAL_DATA));
  const Json evaluation = Json::parse(read_file(directory / "run/summary.json")).at("evaluation");
  EXPECT_EQ(evaluation.at("samples"), 625);
  constexpr double kWeekBefore = 490.1;
  EXPECT_LT(evaluation.at("mean_absolute_error"), 0.7 * kWeekBefore);
}

// The last evaluation of a run with the config that trainer init writes for a table, unedited.
Json evaluate_first_config(const TemporaryDirectory& directory, const std::string& table,
                           const std::string& label) {
  const std::string start = fmt::format("cd {} && ", directory.path().string());
  succeeded(run_command(fmt::format("{}{} init {}/{}_train.csv --label {} --output first.toml", start,
                                    trainer_path(), LOCKSTEP_REAL_DATA, table, label)));
  succeeded(run_command(start + mpiexec_words() + " " + rank_words(2, "--config first.toml")));
  return Json::parse(read_file(directory / "runs/first/summary.json")).at("evaluation");
}

TEST(RealData, TheFirstConfigOfInitIsAsGoodAsOneMadeByHand) {
  struct Case {
    std::string config;
    std::string table;
    std::string label;
    std::string metric;
    Index samples;
  };
  for (const Case& each : {Case{"cpssw8_wide_deep_allreduce", "cpssw8", "over_20", "auc", 12'279},
                           Case{"census_mlp_allreduce", "fertility", "morekids", "auc", 50'930},
                           Case{"diamonds_mlp_allreduce", "diamonds", "log_price", "r2", 10'788}}) {
    const TemporaryDirectory directory;
    const double by_hand = evaluate(each.config, each.table, each.samples).at(each.metric);
    const Json first = evaluate_first_config(directory, each.table, each.label);
    EXPECT_EQ(first.at("samples"), each.samples);
    EXPECT_GT(first.at(each.metric), 0.98 * by_hand) << each.table;
  }
}

TEST(RealData, EarlyStoppingKeepsTheBestAucOfCustomersWhoLeave) {
  const TemporaryDirectory directory;
  const Json test = evaluate_first_config(directory, "churn", "churn");
  EXPECT_GT(test.at("auc"), 0.83);  // logistic regression: 0.84
  const Json summary = Json::parse(read_file(directory / "runs/first/summary.json"));
  EXPECT_TRUE(summary.contains("early_stopping")) << "it made all steps";
  double best = 0;
  double last = 0;
  std::istringstream lines(read_file(directory / "runs/first/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    if (json.value("split", "") != "validation") continue;
    last = json.at("auc");
    best = std::max(best, last);
  }
  EXPECT_EQ(summary.at("kept").at("value"), best);
  EXPECT_GT(best, last);
}

TEST(RealData, AnyNumberOfRanksLearnsTheSame) {
  const Trained one = train(1, "cpssw8_wide_deep_allreduce", "cpssw8");
  const Trained three = train(3, "cpssw8_wide_deep_allreduce", "cpssw8");
  EXPECT_TRUE(one.model == three.model);
  EXPECT_EQ(one.evaluation, three.evaluation);
}

}  // namespace
}  // namespace lockstep::test::real_data_test
