// Forecasts through the real executable: windows of a table of sales, trained on, evaluated and predicted,
// beside forecasts that need no model; and what trainer init makes of such a table.
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

using Json = nlohmann::json;

class ForecastFigures : public TrainerRuns {
 protected:
  ForecastFigures() {
    std::string text = "day,shop,sold\n";
    for (int day = 0; day < 120; ++day) {
      for (const char* shop : {"north", "south"}) {
        const double sold = 20 + 10 * std::sin(day * 2 * 3.14159265 / 7) + (*shop == 'n' ? 30 : 0) + day % 3;
        text += fmt::format("{},{},{:.2f}\n", day, shop, sold);
      }
    }
    write("sales.csv", text);
  }

  std::string flags(const std::string& more = "") const {
    return fmt::format(
        "--config {} --data.train {} --data.label sold --data.time day --data.series shop --data.window 14 "
        "--data.horizon 6 --data.season 7 --data.columns 'sold: standard' "
        "--data.validation 'time(day, from = \"80\", to = \"100\")' "
        "--data.test_part 'time(day, from = \"100\")' --model.layers 'dense(6)' "
        "--train.loss mean_squared_error --train.optimizer adam --train.epochs 20 --train.global_batch 16 "
        "--train.replicas 6 --distribute.reduction ordered --eval.batch 7 {}",
        path("run.toml"), path("sales.csv"), more);
  }
};

TEST_F(ForecastFigures, AreTheSameAtTheEndAndInEvalOnAnyNumberOfRanks) {
  std::string shown;
  for (const int ranks : {1, 2, 3}) {
    const std::string run = directory_ / fmt::format("run{}", ranks);
    succeed(ranks, flags("--train.lr 0.05 --run.dir " + run));
    expect_parts(read_file(run + "/log.txt"), {"test: repeating the last value has mean_absolute_error"});
    expect_parts(read_file(run + "/log.txt"), {"below that of repeating the value 7 positions before"});
    const Json record = Json::parse(read_file(run + "/run.json"));
    const Json found = evaluate(ranks, "--model " + run + " --json -");
    for (const char* split : {"validation", "test"}) {
      const Json& errors = record["forecasts"][split];
      EXPECT_EQ(errors, found[split]["forecast"]);
      ASSERT_EQ(errors.size(), 3U);
      EXPECT_EQ(errors[0]["name"], "the model");
      EXPECT_EQ(errors[2]["name"], "repeating the value 7 positions before");
      EXPECT_EQ(errors[2]["by_step"].size(), 6U);
      EXPECT_NEAR(errors[0]["mean_absolute_error"], record["figures"][split]["values"]["mean_absolute_error"],
                  1e-9);
    }
    EXPECT_EQ(record["forecasts"]["test"], record["result"]["evaluation"]["forecast"]);
    const std::string now = record["forecasts"].dump() + read_file(run + "/evaluation.json");
    if (shown.empty()) shown = now;
    EXPECT_EQ(now, shown) << ranks;
  }
}

TEST_F(ForecastFigures, AWindowIsShownAsTheTableHasIt) {
  const std::string run = directory_ / "run";
  succeed(1, flags("--train.lr 0.05 --run.dir " + run));
  const Json file = Json::parse(read_file(run + "/evaluation.json"));
  ASSERT_EQ(file["windows"].size(), 2U);
  const Json& south = file["windows"][1];
  EXPECT_EQ(south["name"], "south");
  ASSERT_EQ(south["past"].size(), 14U) << "the window has less than four horizons";
  ASSERT_EQ(south["times"].size(), 20U);
  EXPECT_EQ(south["times"][0], "100");
  EXPECT_EQ(south["times"][19], "119");
  const auto sold = [](int day) { return 20 + 10 * std::sin(day * 2 * 3.14159265 / 7) + day % 3; };
  EXPECT_NEAR(south["past"][13], sold(113), 0.01);
  EXPECT_NEAR(south["truth"][5], sold(119), 0.01);
  EXPECT_FALSE(file.contains("fits"));
  EXPECT_EQ(file["columns"], Json({"shop", "first time ahead"}));
}

TEST_F(ForecastFigures, AModelThatIsNoBetterIsSaidToBe) {
  const std::string run = directory_ / "run";
  succeed(1, flags("--train.lr 0.000001 --run.dir " + run));
  const std::string beaten = "it is no better than a forecast that needs no model";
  expect_parts(read_file(run + "/log.txt"),
               {"test: repeating the value 7 positions before has mean_absolute_error"});
  expect_parts(Json::parse(read_file(run + "/run.json"))["warnings"].dump(), {beaten});
  expect_parts(run_trainer(1, "eval --model " + run).output, {beaten});
}

constexpr Index kSalesDays = 400;
constexpr Index kSalesHorizon = 14;
constexpr Index kSalesTestDays = 60;  // 0.15 of them
constexpr std::array kSalesStores{"mill", "north", "south"};

// Sales of three stores, more at the end of each week.
class FirstForecast : public testing::Test {
 protected:
  FirstForecast() {
    constexpr std::array kWeek{0.8, 0.8, 0.9, 1.0, 1.3, 1.6, 0.6};
    RandomStream random({.seed = 5, .purpose = Purpose::kSynthetic});
    std::string text = "day,store,sold\n";
    for (Index day = 0; day < kSalesDays; ++day) {
      for (std::size_t store = 0; store < kSalesStores.size(); ++store) {
        const double level = 20 * static_cast<double>(store + 1) * at(kWeek, day % 7);
        sold_[store].push_back(std::round(level * std::exp(0.1 * double{random.normal()})));
        text += fmt::format("{},{},{}\n", day, kSalesStores[store], sold_[store].back());
      }
    }
    write_file_atomically(directory_ / "sales.csv", text);
  }

  ProcessResult init(const std::string& flags) const {
    return run_command(fmt::format("cd {} && {} init sales.csv --label sold {}", directory_.path().string(),
                                   trainer_path(), flags));
  }

  // Mean absolute error of repeating the last value, over the windows of the test set.
  double error_of_last_value() const {
    double sum = 0;
    Index count = 0;
    for (const std::vector<double>& sold : sold_) {
      for (Index origin = kSalesDays - kSalesTestDays; origin + kSalesHorizon <= kSalesDays; ++origin) {
        for (Index step = 0; step < kSalesHorizon; ++step, ++count)
          sum += std::abs(at(sold, origin + step) - at(sold, origin - 1));
      }
    }
    return sum / static_cast<double>(count);
  }

  TemporaryDirectory directory_;
  std::array<std::vector<double>, 3> sold_;
};

TEST_F(FirstForecast, IsBetterThanTheLastValue) {
  expect_parts(succeeded(init("--time day --series store --horizon 14")).output,
               {"1,200 records", "forecast of 14 positions from 42 before, series: 3",
                "trainer predict runs/sales --input sales.csv --output forecast.csv"});
  expect_parts(read_file(directory_ / "sales.toml"),
               {"window = 42", "horizon = 14", "season = 7", "window_scale = \"last\"", "time(day, 0.2)",
                "time(day, 0.15)", "categorical = [\"store\"]"});
  succeeded(run_command(fmt::format("cd {} && {} {}", directory_.path().string(), mpiexec_words(),
                                    rank_words(2, "--config sales.toml"))));
  const Json evaluation = Json::parse(read_file(directory_ / "runs/sales/summary.json")).at("evaluation");
  EXPECT_EQ(evaluation.at("samples"), 3 * (kSalesTestDays - kSalesHorizon + 1));
  EXPECT_LT(evaluation.at("mean_absolute_error"), 0.6 * error_of_last_value());
}

TEST_F(FirstForecast, FlagsThatDoNotFitAreRefused) {
  struct Case {
    std::string flags;
    std::vector<std::string> parts;
  };
  const std::string series = "--time day --series store ";
  for (const Case& each :
       {Case{"--horizon 14", {"need --time"}}, Case{"--series store", {"need --time"}},
        Case{series, {"--time needs --horizon"}},
        Case{series + "--horizon 0", {"horizon", "expected a whole number from 1"}},
        Case{"--time store --horizon 14", {"'store'", "dates of one form"}},
        Case{"--time daj --horizon 14", {"no column 'daj'", "'day'"}},
        Case{"--time sold --horizon 14", {"--time names the label"}},
        Case{"--time day --horizon 14 --series stor", {"no column 'stor'", "'store'"}},
        Case{series + "--horizon 14 --future sold", {"data.future = 'sold'", "label"}},
        Case{series + "--horizon 14 --task classes", {"--task classes", "numbers"}},
        Case{series + "--horizon 150", {"400 positions", "--horizon 100 would fit"}},
        Case{series + "--horizon 14 --window 373", {"400 positions", "--window 372 would fit"}}}) {
    SCOPED_TRACE(each.flags);
    const ProcessResult refused = ended_with(init(each.flags + " --output refused.toml"), kExitConfig);
    expect_parts(refused.errors, each.parts);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "refused.toml"));
  }
  expect_failed(init("--time day --horizon 14"), kExitData, {"have the same time", "data.series"});
}

}  // namespace
}  // namespace lockstep::test::forecast_test
