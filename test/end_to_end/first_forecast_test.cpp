// From a table of sales to a forecast, with the config that trainer init writes, unedited; and what init says
// to flags of series that are wrong.
#include "lockstep/base/random.h"
#include "support/trainer_runs.h"

namespace lockstep::test::first_forecast_test {
namespace {

using Json = nlohmann::json;

constexpr Index kDays = 400;
constexpr Index kHorizon = 14;
constexpr Index kTestDays = 60;  // 0.15 of them
constexpr std::array kStores{"mill", "north", "south"};

// Sales of three stores, more at the end of each week.
class FirstForecast : public testing::Test {
 protected:
  FirstForecast() {
    constexpr std::array kWeek{0.8, 0.8, 0.9, 1.0, 1.3, 1.6, 0.6};
    RandomStream random({.seed = 5, .purpose = Purpose::kSynthetic});
    std::string text = "day,store,sold\n";
    for (Index day = 0; day < kDays; ++day) {
      for (std::size_t store = 0; store < kStores.size(); ++store) {
        const double level = 20 * static_cast<double>(store + 1) * at(kWeek, day % 7);
        sold_[store].push_back(std::round(level * std::exp(0.1 * double{random.normal()})));
        text += fmt::format("{},{},{}\n", day, kStores[store], sold_[store].back());
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
      for (Index origin = kDays - kTestDays; origin + kHorizon <= kDays; ++origin) {
        for (Index step = 0; step < kHorizon; ++step, ++count)
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
  EXPECT_EQ(evaluation.at("samples"), 3 * (kTestDays - kHorizon + 1));
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
}  // namespace lockstep::test::first_forecast_test
