// Losses through the real executable, on two ranks: what is learned, what the predictions are, and targets
// that cannot be.
#include "lockstep/base/random.h"
#include "support/trainer_runs.h"

namespace lockstep::test::loss_runs_test {
namespace {

class LossRuns : public TrainerRuns {
 protected:
  LossRuns() : TrainerRuns("[train]\noptimizer = \"adam\"\nlr = 0.05\n") {}

  // Records without features that mean something, whose labels come in turn.
  void write_table(const std::vector<double>& labels) const {
    RandomStream random({.seed = 5, .purpose = Purpose::kSynthetic});
    std::ofstream table(directory_ / "t.csv");
    table << "x,y\n";
    for (std::size_t i = 0; i < 240; ++i)
      table << fmt::format("{},{}\n", double{random.normal()}, labels[i % labels.size()]);
  }

  ProcessResult train(const std::string& loss, const std::string& flags, int outputs = 1) const {
    return TrainerRuns::train(
        2, "run",
        fmt::format("--data.train {} --data.label y --train.loss {} --train.epochs 40 "
                    "--train.global_batch 60 --train.replicas 2 --model.layers 'dense({})' {}",
                    path("t.csv"), loss, outputs, flags));
  }

  // The predictions of one record, behind their header.
  std::string predict() const { return TrainerRuns::predict(2, "run", write("new.csv", "x\n0\n"), "p.csv"); }

  static std::vector<double> numbers(const std::string& predictions) {
    std::istringstream cells(predictions.substr(predictions.find("\n0,") + 3));
    std::vector<double> all;
    for (std::string cell; std::getline(cells, cell, ',');) all.push_back(std::stod(cell));
    return all;
  }
};

TEST_F(LossRuns, MeansOfCountsAndAmountsArePredictedNotTheirLogarithms) {
  write_table({1, 2, 3, 10});
  for (const char* loss : {"poisson", "gamma"}) {
    SCOPED_TRACE(loss);
    succeeded(train(loss, "--data.validation_share 0.2"));
    EXPECT_NEAR(numbers(predict()).at(0), 4, 0.8);
    std::filesystem::remove_all(directory_ / "run");
  }
}

TEST_F(LossRuns, LevelsOfQuantilesAreColumns) {
  write_table({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  succeeded(train("quantile", "--train.quantiles 0.15,0.85 --data.columns 'y: standard'", 2));
  const std::string predictions = predict();
  EXPECT_TRUE(predictions.starts_with("row,q0.15,q0.85\n0,")) << predictions;
  const std::vector<double> levels = numbers(predictions);
  EXPECT_NEAR(levels.at(0), 2, 1) << "in the units of the label";
  EXPECT_NEAR(levels.at(1), 9, 1);
}

TEST_F(LossRuns, ATargetThatCannotBeIsNamedWithItsRecord) {
  write_table({1, 2, -3});
  expect_failed(train("poisson", ""), kExitData,
                {"t.csv", "line 4", "'y'", "-3", "0 or more", "'mean_squared_error'"});
  write_table({1, 0, 3});
  expect_failed(train("gamma", ""), kExitData, {"t.csv", "line 3", "'y'", "label 0", "above 0", "'tweedie'"});
  expect_failed(train("tweedie", "--data.columns 'y: log'"), kExitConfig, {"y: log", "tweedie", "y: none"});
}

}  // namespace
}  // namespace lockstep::test::loss_runs_test
