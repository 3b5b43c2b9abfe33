// Trainings that learn nothing, through the real executable: what they say, and that others are silent. A
// label that is scaled: its measures, and those of its predictions by hand. What each loss predicts, and
// targets that it refuses.
#include "lockstep/base/random.h"
#include "support/trainer_runs.h"

namespace lockstep::test::learning_runs_test {
namespace {

constexpr const char* kDoubt = "the model got no better";

class LearningRuns : public TrainerRuns {
 protected:
  LearningRuns() : TrainerRuns("[train]\nglobal_batch = 20\nreplicas = 2\nepochs = 8\n") {}

  // y is a number of about `shift`, with a spread of `spread`; z is whether it is above that.
  void write_table(double shift, double spread) const {
    RandomStream random({.seed = 5, .purpose = Purpose::kSynthetic});
    std::ofstream table(directory_ / "t.csv");
    table << "a,b,y,z\n";
    for (int i = 0; i < 400; ++i) {
      const double a = random.normal();
      const double b = random.normal();
      const double x = 0.8 * a - 0.5 * b + 0.1 * double{random.normal()};
      table << fmt::format("{},{},{:.6f},{}\n", a, b, shift + spread * x, x > 0 ? "yes" : "no");
    }
  }

  ProcessResult train(int ranks, const std::string& flags) const {
    std::filesystem::remove_all(directory_ / "run");
    return TrainerRuns::train(ranks, "run", fmt::format("--data.train {} {}", path("t.csv"), flags));
  }
};

TEST_F(LearningRuns, WarnOfARateThatIsFarTooHighOrTooLow) {
  write_table(0, 1);
  const std::string number =
      "--data.label y --data.ignore z --train.loss mean_squared_error "
      "--model.layers 'dense(8) relu dense(1)' ";
  const std::string answer =
      "--data.label z --data.ignore y --train.loss binary_cross_entropy --model.layers 'dense(8) relu "
      "dense(1)' "
      "--data.columns 'z: categorical' ";
  for (const std::string& task : {number, answer}) {
    for (const char* held : {"", "--data.validation 'share(0.2)' "}) {
      for (const char* optimizer : {"sgd", "adam"}) {
        const std::string flags = task + held + "--train.optimizer " + optimizer;
        SCOPED_TRACE(flags);
        expect_parts(succeeded(train(1, flags + " --train.lr 1e-9")).errors,
                     {kDoubt, "train.lr = 1e-09 is likely too low"});
        EXPECT_NE(json_in("run/run.json")["warnings"].dump().find(kDoubt), std::string::npos);
        EXPECT_NE(read_file(directory_ / "run/report.html").find(kDoubt), std::string::npos);
        const ProcessResult high = train(1, flags + " --train.lr 1e6");
        if (high.exit_code == 0) expect_parts(high.errors, {kDoubt, "train.lr = 1e+06 is likely too high"});
        if (high.exit_code != 0) expect_parts(high.errors, {"training stops", "Lower train.lr"});
        const ProcessResult right = succeeded(train(2, flags + " --train.lr 0.02"));
        EXPECT_EQ(right.errors.find(kDoubt), std::string::npos) << right.errors;
      }
    }
  }
}

TEST_F(LearningRuns, WarnOfALabelFarFromOneBeforeTheFirstStep) {
  write_table(3e5, 1e5);
  const std::string flags =
      "--data.label y --data.ignore z --train.loss mean_squared_error --train.optimizer "
      "adam --data.validation 'share(0.2)' --model.layers 'dense(8) relu dense(1)' ";
  const ProcessResult far = succeeded(train(2, flags));
  const std::string line = "columns = [\"y: standard\"]";
  expect_parts(far.errors,
               {"label 'y' is far from 1 (mean 2.9e+05", line, kDoubt, "Likely cause: label 'y'"});
  const ProcessResult stopped = ended_with(train(2, flags + "--train.optimizer sgd"), 5);
  expect_parts(stopped.errors.substr(stopped.errors.find("training stops")), {"Lower train.lr", line});
  expect_no_parts(train(2, flags + "--data.columns 'y: standard' --train.lr 0.01").errors, {"far from 1"});
}

// Seconds since 1970, so close together that single precision takes many for one.
TEST_F(LearningRuns, MeasureAScaledLabelInItsOwnUnits) {
  write_table(1.7e9, 100);
  const std::string flags =
      "--data.label y --data.ignore z --train.loss mean_squared_error --train.optimizer adam --train.lr 0.02 "
      "--data.columns 'y: standard' --model.layers 'dense(8) relu dense(1)' --eval.metrics "
      "mean_absolute_error,root_mean_squared_error,mean_absolute_percentage_error,r2 ";
  nlohmann::json measured;
  for (const int ranks : {1, 2, 3}) {
    SCOPED_TRACE(ranks);
    const ProcessResult result = succeeded(
        train(ranks, flags + fmt::format("--data.test {}/t.csv --train.replicas 6 --train.global_batch 24 "
                                         "--distribute.reduction ordered",
                                         directory_.path().string())));
    expect_parts(result.output,
                 {" label  y: number, standard: mean 1.7e+09", " of the scaled label, mean_abs"});
    const nlohmann::json now = evaluation("run");
    if (ranks == 1) measured = now;
    EXPECT_EQ(now, measured) << "the same bits";
  }
  std::istringstream predictions(predict(2, "run", path("t.csv"), "p.csv"));
  std::ifstream table(directory_ / "t.csv");
  std::string row;
  std::string predicted;
  std::getline(table, row);
  std::getline(predictions, predicted);
  double absolute = 0;
  double squares = 0;
  double share = 0;
  std::vector<double> labels;
  while (std::getline(table, row) && std::getline(predictions, predicted)) {
    const std::string before = row.substr(0, row.rfind(','));
    labels.push_back(std::stod(before.substr(before.rfind(',') + 1)));
    const double error = std::stod(predicted.substr(predicted.find(',') + 1)) - labels.back();
    absolute += std::abs(error) / 400;
    squares += error * error / 400;
    share += std::abs(error) / labels.back() / 400;
  }
  ASSERT_EQ(labels.size(), 400U);
  double mean = 0;
  for (const double label : labels) mean += label / 400;
  double spread = 0;
  for (const double label : labels) spread += (label - mean) * (label - mean) / 400;
  EXPECT_NEAR(measured["mean_absolute_error"].get<double>() / absolute, 1, 1e-4);
  EXPECT_NEAR(measured["root_mean_squared_error"].get<double>() / std::sqrt(squares), 1, 1e-4);
  EXPECT_NEAR(measured["mean_absolute_percentage_error"].get<double>() / share, 1, 1e-4);
  EXPECT_NEAR(measured["r2"].get<double>(), 1 - squares / spread, 1e-4);
  EXPECT_GT(measured["r2"].get<double>(), 0.9);
}

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
    succeeded(train(loss, "--data.validation 'share(0.2)'"));
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
}  // namespace lockstep::test::learning_runs_test
