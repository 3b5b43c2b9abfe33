// Losses through the real executable, on two ranks: what is learned, what the predictions are, and targets
// that cannot be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/random.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test::loss_runs_test {
namespace {

class LossRuns : public testing::Test {
 protected:
  // Records without features that mean something, whose labels come in turn.
  void write_table(const std::vector<double>& labels) const {
    RandomStream random({.seed = 5, .purpose = Purpose::kSynthetic});
    std::ofstream table(directory_ / "t.csv");
    table << "x,y\n";
    for (std::size_t i = 0; i < 240; ++i) {
      table << fmt::format("{},{}\n", double{random.normal()}, labels[i % labels.size()]);
    }
  }

  ProcessResult train(const std::string& loss, const std::string& flags, int outputs = 1) const {
    std::ofstream(directory_ / "c.toml") << "[train]\noptimizer = \"adam\"\nlr = 0.05\n";
    return run_trainer(
        2, fmt::format("--config {0}/c.toml --data.train {0}/t.csv --data.label y --train.loss {1} "
                       "--train.epochs 40 --train.global_batch 60 "
                       "--train.replicas 2 --run.dir {0}/run --model.layers 'dense({3})' {2}",
                       directory_.path().string(), loss, flags, outputs));
  }

  // The predictions of one record, behind their header.
  std::string predict() const {
    std::ofstream(directory_ / "new.csv") << "x\n0\n";
    const ProcessResult result = run_trainer(
        2, fmt::format("predict --model {0}/run --input {0}/new.csv --output {0}/p.csv --overwrite",
                       directory_.path().string()));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return read_file(directory_ / "p.csv");
  }

  static std::vector<double> numbers(const std::string& predictions) {
    std::istringstream cells(predictions.substr(predictions.find("\n0,") + 3));
    std::vector<double> all;
    for (std::string cell; std::getline(cells, cell, ',');) all.push_back(std::stod(cell));
    return all;
  }

  TemporaryDirectory directory_;
};

TEST_F(LossRuns, MeansOfCountsAndAmountsArePredictedNotTheirLogarithms) {
  write_table({1, 2, 3, 10});
  for (const char* loss : {"poisson", "gamma"}) {
    SCOPED_TRACE(loss);
    const ProcessResult result = train(loss, "--data.validation_share 0.2");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NEAR(numbers(predict()).at(0), 4, 0.8);
    std::filesystem::remove_all(directory_ / "run");
  }
}

TEST_F(LossRuns, LevelsOfQuantilesAreColumns) {
  write_table({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const ProcessResult result =
      train("quantile", "--train.quantiles 0.15,0.85 --data.columns 'y: standard'", 2);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  const std::string predictions = predict();
  EXPECT_TRUE(predictions.starts_with("row,q0.15,q0.85\n0,")) << predictions;
  const std::vector<double> levels = numbers(predictions);
  EXPECT_NEAR(levels.at(0), 2, 1) << "in the units of the label";
  EXPECT_NEAR(levels.at(1), 9, 1);
}

TEST_F(LossRuns, ATargetThatCannotBeIsNamedWithItsRecord) {
  write_table({1, 2, -3});
  const ProcessResult negative = train("poisson", "");
  EXPECT_EQ(negative.exit_code, kExitData);
  expect_parts(negative.errors, {"t.csv", "line 4", "'y'", "-3", "0 or more", "'mean_squared_error'"});
  write_table({1, 0, 3});
  const ProcessResult zero = train("gamma", "");
  EXPECT_EQ(zero.exit_code, kExitData);
  expect_parts(zero.errors, {"t.csv", "line 3", "'y'", "label 0", "above 0", "'tweedie'"});
  const ProcessResult scaled = train("tweedie", "--data.columns 'y: log'");
  EXPECT_EQ(scaled.exit_code, kExitConfig);
  expect_parts(scaled.errors, {"y: log", "tweedie", "y: none"});
}

}  // namespace
}  // namespace lockstep::test::loss_runs_test
