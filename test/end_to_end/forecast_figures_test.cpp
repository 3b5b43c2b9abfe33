// What one sees of a run on windows of time: the same figures at its end and in `trainer eval`, on any number
// of ranks, beside forecasts that need no model.
#include "support/trainer_runs.h"

namespace lockstep::test::forecast_figures_test {
namespace {

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

}  // namespace
}  // namespace lockstep::test::forecast_figures_test
