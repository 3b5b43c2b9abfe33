// Forecasts through the real executable: windows of a table of sales, trained on, evaluated and predicted.
#include <cstdint>
#include <cstring>
#include <map>
#include <numbers>

#include "lockstep/base/random.h"
#include "support/trainer_runs.h"

namespace lockstep::test::forecast_test {
namespace {

constexpr int kDays = 120;
constexpr int kTrainingDays = 84;

class Forecast : public TrainerRuns {
 protected:
  // Sales of three stores with a week's rhythm. From `changed` on numbers are a million times as large.
  std::string sales(int changed = kDays, int days = kDays) const {
    RandomStream random({.seed = 3, .purpose = Purpose::kSynthetic});
    std::string text = "date,store,price,sold\n";
    for (int day = 0; day < days; ++day) {
      for (int store = 0; store < 3; ++store) {
        const double factor = day < changed ? 1 : 1e6;
        const double week = 1 + 0.3 * std::sin(2 * std::numbers::pi * day / 7);
        const double sold = 20 * (store + 1) * week + double{random.normal()};
        text += fmt::format("{},{},{:.3f},{:.3f}\n", date(day), kStores[store],
                            factor * (2 + 0.1 * (day % 5)), factor * sold);
      }
    }
    return write(fmt::format("sales{}_{}.csv", changed, days), text);
  }
  static std::string date(int day) {
    constexpr int kDaysOfMonth[] = {31, 28, 31, 30, 31};
    int month = 0;
    for (; day >= kDaysOfMonth[month]; ++month) day -= kDaysOfMonth[month];
    return fmt::format("2023-{:02}-{:02}", month + 1, day + 1);
  }

  std::string config(const std::string& train) const {
    configure(fmt::format(
        "[data]\ntrain = \"{}\"\nlabel = \"sold\"\ntime = \"date\"\nseries = \"store\"\nwindow = 14\n"
        "horizon = 7\nseason = 7\nwindow_scale = \"last\"\nfuture = \"price\"\ncategorical = \"store\"\n"
        "columns = \"sold: standard\"\n"
        "validation = \"time(date, from = {}, to = {})\"\ntest_part = \"time(date, from = {})\"\n"
        "[model]\nlayers = \"dense(8) relu dense(7)\"\n"
        "[train]\nloss = \"mean_squared_error\"\noptimizer = \"adam\"\nlr = 0.01\nepochs = 3\n"
        "global_batch = 36\nreplicas = 6\n[distribute]\nreduction = \"ordered\"\n",
        train, date(kTrainingDays), date(kTrainingDays + 18), date(kTrainingDays + 18)));
    return path("run.toml");
  }

  // Gives the directory of the run.
  std::string train(int ranks, const std::string& table, const std::string& flags = "") {
    const std::string run = directory_ / fmt::format("run{}", ++runs_);
    succeed(ranks, fmt::format("--config {} --run.dir {} {}", config(table), run, flags));
    return run;
  }
  static std::string model(const std::string& run) { return read_file(run + "/model.safetensors"); }

  // The bytes of the weights of each checkpoint.
  static std::map<std::string, std::string> checkpoints(const std::string& run) {
    std::map<std::string, std::string> weights;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run + "/checkpoints")) {
      const std::string name = std::filesystem::relative(entry.path(), run).string();
      if (!name.ends_with("model.safetensors") || name.find("best") != std::string::npos) continue;
      const std::string file = read_file(entry.path());
      std::uint64_t header = 0;
      std::memcpy(&header, file.data(), sizeof header);
      weights[name] = file.substr(sizeof header + header);
    }
    return weights;
  }

  static constexpr const char* kStores[] = {"north", "south", "west"};
  int runs_ = 0;
};

TEST_F(Forecast, NothingThatComesAfterTheTrainingSpanMovesAWeight) {
  const std::string all =
      "--train.keep last --checkpoint.every '1 epoch' --checkpoint.keep 10 --checkpoint.wait true";
  const std::string changed = sales(kTrainingDays);
  EXPECT_EQ(model(train(1, sales(), all)) == model(train(1, changed, all)), true);
  // What decides which weights are kept may be another, but not the weights.
  const std::string best = "--checkpoint.every '1 epoch' --checkpoint.keep 10 --checkpoint.wait true";
  const auto before = checkpoints(train(1, sales(), best));
  const auto after = checkpoints(train(1, changed, best));
  EXPECT_GE(before.size(), 3U);
  EXPECT_EQ(before == after, true);
  // One day earlier, and the model learns from it.
  EXPECT_EQ(model(train(1, sales(kTrainingDays - 1), all)) == model(train(1, sales(), all)), false);
}

TEST_F(Forecast, TheSameBitsOnAnyRanksThreadsStrategiesAndStages) {
  const std::string table = sales();
  const std::string expected = model(train(1, table));
  for (const auto& [ranks, flags] :
       {std::pair(2, ""), std::pair(3, ""), std::pair(1, "--train.threads 3 --data.prefetch 2"),
        std::pair(3, "--distribute.strategy zero1"), std::pair(2, "--distribute.strategy central_storage"),
        std::pair(3, "--distribute.strategy parameter_server"), std::pair(2, "--distribute.stages 2")}) {
    EXPECT_EQ(model(train(ranks, table, flags)) == expected, true) << ranks << " ranks " << flags;
  }
}

TEST_F(Forecast, ARunThatIsKilledGoesOnWithTheSameBits) {
  const std::string table = sales();
  const std::string every = "--checkpoint.every '5 steps' --checkpoint.wait true";
  const std::string expected = model(train(1, table, every));
  const std::string run = directory_ / "killed";
  const std::string arguments = fmt::format("--config {} --run.dir {} {}", config(table), run, every);
  EXPECT_NE(run_trainer(2, arguments + " --debug.fail_rank 1 --debug.fail_step 12").exit_code, 0);
  expect_parts(succeed(3, arguments).output, {"goes on from", "epoch 2.00"});
  EXPECT_EQ(model(run) == expected, true);
  // Other sales are another experiment.
  expect_failed(run_trainer(1, fmt::format("--config {} --run.dir {} --train.epochs 4",
                                           config(sales(kTrainingDays)), run)),
                2);
}

TEST_F(Forecast, PredictWritesARowForEachSeriesAndStepAhead) {
  const std::string run = train(1, sales());
  // A later file, of whose last week only the price is known.
  std::string text = read_file(sales(kDays, kDays - 7));
  for (int day = kDays - 7; day < kDays; ++day) {
    for (const char* store : kStores)
      text += fmt::format("{},{},{:.3f},\n", date(day), store, 2 + 0.1 * (day % 5));
  }
  const std::string later = write("later.csv", text);
  const auto predict = [&](int ranks, const std::string& output) {
    succeed(ranks, fmt::format("predict --model {} --input {} --output {}", run, later, directory_ / output));
    return read_file(directory_ / output);
  };
  EXPECT_EQ(predict(1, "one.csv"), predict(3, "three.csv"));
  const std::vector<std::string> rows = lines_of(read_file(directory_ / "one.csv"));
  ASSERT_EQ(rows.size(), 1U + 3 * 7);
  EXPECT_EQ(rows[0], "row,store,date,prediction");
  EXPECT_TRUE(rows[1].starts_with("0,north," + date(kDays - 7) + ",")) << rows[1];
  EXPECT_TRUE(rows[21].starts_with("20,west," + date(kDays - 1) + ",")) << rows[21];
  // Rows in units of the label: the mean of a store is 20, 40, 60.
  for (int store = 0; store < 3; ++store) {
    double sum = 0;
    for (int step = 0; step < 7; ++step) {
      const std::string& row = rows[static_cast<std::size_t>(1 + store * 7 + step)];
      sum += std::stod(row.substr(row.rfind(',') + 1));
    }
    EXPECT_NEAR(sum / 7, 20 * (store + 1), 12) << store;
  }
}

// Of two labels one is a thousand times the other; of the last week only the price is known.
TEST_F(Forecast, PredictHasEachLabelInItsOwnUnits) {
  const auto table = [&](const std::string& name, int known) {
    std::string text = "date,store,price,visits,sold\n";
    for (int row = 0; row < 3 * kDays; ++row) {
      const int day = row / 3;
      const double sold = 20 * (row % 3 + 1) * (1 + 0.3 * std::sin(2 * std::numbers::pi * day / 7));
      text += fmt::format("{},{},{:.3f},", date(day), kStores[row % 3], 2 + 0.1 * (day % 5));
      text += day < known ? fmt::format("{:.3f},{:.3f}\n", 1000 * sold + 7, sold) : ",\n";
    }
    return write(name, text);
  };
  const std::string run = train(2, table("both.csv", kDays),
                                "--data.label sold,visits --data.columns 'sold: standard,visits: standard' "
                                "--model.layers 'dense(8) relu dense(14)'");
  succeed(2, fmt::format("predict --model {} --input {} --output {}", run, table("week.csv", kDays - 7),
                         path("p.csv")));
  const std::vector<std::string> rows = lines_of(read_file(path("p.csv")));
  ASSERT_EQ(rows.size(), 1U + 3 * 7);
  EXPECT_EQ(rows[0], "row,store,date,visits,sold");
  for (std::size_t row = 1; row < rows.size(); ++row) {
    const std::size_t last = rows[row].rfind(',');
    const double visits = std::stod(rows[row].substr(rows[row].rfind(',', last - 1) + 1));
    const double mean = 20 * static_cast<double>((row - 1) / 7 + 1);
    EXPECT_NEAR(std::stod(rows[row].substr(last + 1)), mean, 25) << rows[row];
    EXPECT_NEAR(visits / 1000, mean, 25) << rows[row];
  }
}

TEST_F(Forecast, AGraphOfOnnxTakesThePositionsOfEachColumn) {
  const std::string run = train(1, sales());
  const ProcessResult result =
      run_trainer(fmt::format("export --model {} --format onnx --output {}", run, directory_ / "model.onnx"));
  if (result.errors.find("was built without") != std::string::npos) GTEST_SKIP() << result.errors;
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_GT(std::filesystem::file_size(directory_ / "model.onnx"), 500U);
}

TEST_F(Forecast, RefusesWhatCannotBeWithTheKeyAtFault) {
  const std::string table = sales();
  const auto refusal = [&](const std::string& flags, int ranks = 1) {
    const ProcessResult result = run_trainer(
        ranks, fmt::format("--config {} --run.dir {} {}", config(table), directory_ / "refused", flags));
    EXPECT_EQ(result.exit_code == 2 || result.exit_code == 3, true) << result.exit_code << result.output;
    EXPECT_EQ(count_of(result.errors, "error:"), 1) << result.errors;
    return result.errors;
  };
  expect_parts(refusal("--data.horizon 0"), {"data.horizon", "1"});
  expect_parts(refusal("--data.window 200", 2), {"window of 200", "horizon of 7"});
  expect_parts(refusal("--data.time day"), {"data.time: there is no column 'day'"});
  expect_parts(refusal("--data.series shop"), {"data.series: there is no column 'shop'"});
  expect_parts(refusal("--data.future sold"), {"data.future = 'sold'", "label"});
  expect_parts(refusal("--data.validation 'share(0.1)'"), {"windows overlap"});
  expect_parts(refusal("--data.weight price"), {"data.weight with data.window"});
  expect_parts(refusal("--data.memory stream"), {"data.window with data.memory stream"});
  const std::string run = train(1, table);
  std::ofstream(directory_ / "new.csv") << "date,store,price,sold\n2023-01-01,east,2,5\n";
  expect_failed(run_trainer(fmt::format("predict --model {} --input {} --output {}", run,
                                        directory_ / "new.csv", directory_ / "out.csv")),
                3, {"no series with store = 'east'", "north, south, west"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out.csv"));
}

}  // namespace
}  // namespace lockstep::test::forecast_test
