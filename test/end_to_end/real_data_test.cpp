// The configs of real tables learn what they claim: they beat what simpler models reach on the same rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/file.h"
#include "lockstep/base/types.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test {
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
  const ProcessResult result = run_trainer(
      ranks, fmt::format("--config {0}/configs/{1}.toml --run.dir {2} --data.train {3}/{4}_train.csv "
                         "--data.test {3}/{4}_test.csv",
                         LOCKSTEP_SOURCE_DIR, config, run, LOCKSTEP_REAL_DATA, table));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
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

TEST(RealData, AnyNumberOfRanksLearnsTheSame) {
  const Trained one = train(1, "cpssw8_wide_deep_allreduce", "cpssw8");
  const Trained three = train(3, "cpssw8_wide_deep_allreduce", "cpssw8");
  EXPECT_TRUE(one.model == three.model);
  EXPECT_EQ(one.evaluation, three.evaluation);
}

}  // namespace
}  // namespace lockstep::test
