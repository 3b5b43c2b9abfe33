// The season that is found in series, and what inspect says of a table of them.
#include "lockstep/data/time_windows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "app/init/init.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/random.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::series_summary_test {
namespace {

using test::error_text;
using test::expect_parts;

// A wave of so many positions, a trend, and noise in [-noise, noise).
std::vector<double> wave(Index count, Index season, double noise, double trend = 0) {
  RandomStream random({.seed = 7, .purpose = Purpose::kSynthetic});
  std::vector<double> values;
  for (Index i = 0; i < count; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(season);
    values.push_back(std::sin(angle) + trend * static_cast<double>(i) +
                     noise * (2 * static_cast<double>(random.uniform()) - 1));
  }
  return values;
}

Index strongest(const std::vector<double>& values, const std::vector<Index>& usual = {}) {
  const std::vector<std::vector<double>> series{values};
  const std::vector<Season> found = find_seasons(series, usual);
  return found.empty() ? 0 : found.front().positions;
}

TEST(SeriesSummary, FindsTheSeasonUnderATrendAndNoise) {
  EXPECT_EQ(strongest(wave(200, 7, 0.3, 5), {5, 7, 365}), 7);
  EXPECT_EQ(strongest(wave(200, 7, 0.3, -5)), 7) << "among all lengths";
  EXPECT_EQ(strongest(wave(400, 23, 0.3)), 23);
  EXPECT_EQ(strongest(wave(200, 7, 0.3), {12}), 0) << "there is no other one";
  EXPECT_EQ(strongest(wave(20, 7, 0), {7}), 0) << "it is seen three times at least";
  EXPECT_EQ(strongest(wave(21, 7, 0), {7}), 7);
}

// Two times the season have the same autocorrelation, but for noise.
TEST(SeriesSummary, TakesTheShorterOfTwoSeasonsThatAreAsGood) {
  EXPECT_EQ(strongest(wave(2000, 24, 0.5), {24, 168}), 24);
  std::vector<double> weeks = wave(2000, 24, 0.1);
  for (std::size_t i = 0; i < weeks.size(); ++i) weeks[i] *= i % 168 < 120 ? 1 : 0.2;
  EXPECT_EQ(strongest(weeks, {24, 168}), 168);
}

TEST(SeriesSummary, FindsNoSeasonInNoiseATrendAWalkOrWhatIsConstant) {
  EXPECT_EQ(strongest(std::vector<double>(100, 3.0), {7}), 0);
  std::vector<double> noise = wave(500, 7, 1);
  const std::vector<double> season = wave(500, 7, 0);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] -= season[i];
  EXPECT_EQ(strongest(noise), 0);
  std::vector<double> walk = noise;
  for (std::size_t i = 1; i < walk.size(); ++i) walk[i] += walk[i - 1];
  EXPECT_EQ(strongest(walk, {5, 7, 365}), 0);
}

// By hand: the moving means of three are 2/3, 1/3, 1, ..., and so on; what is left repeats without any
// noise. Of two series the longer one counts by its length.
TEST(SeriesSummary, AutocorrelationIsOneOfWhatRepeatsAndTheMeanOverSeries) {
  std::vector<double> repeated;
  for (int i = 0; i < 10; ++i) repeated.insert(repeated.end(), {1.0, 0.0, 3.0});
  const std::vector<std::vector<double>> one{repeated};
  EXPECT_NEAR(find_seasons(one, {3}).front().autocorrelation, 1, 1e-12);
  std::vector<double> turned;  // what repeats after 6, and after 3 with the other sign
  for (int i = 0; i < 60; ++i) turned.push_back(i % 6 < 3 ? i % 3 - 1 : 1 - i % 3);
  const std::vector<std::vector<double>> both{repeated, turned};
  EXPECT_NEAR(find_seasons(both, {6}).front().autocorrelation, 1, 1e-9);
  EXPECT_TRUE(find_seasons(both, {3}).empty()) << "(30 - 60) / 90";
}

TEST(SeriesSummary, ValuesThatAreMissingAreLeftOut) {
  std::vector<double> values = wave(200, 7, 0.1);
  for (std::size_t i = 0; i < values.size(); i += 10) values[i] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(strongest(values, {5, 7}), 7);
}

class SeriesTable : public testing::Test {
 protected:
  // Days of two stores, of which the second begins 30 days later and lacks day 50.
  std::string write() const {
    std::string text = "day,store,price,sold\n";
    for (int i = 0; i < 100; ++i) {
      const std::string day =
          fmt::format("2024-{:02}-{:02}", 1 + i / 28, 1 + i % 28);  // no month has its last days
      for (const int store : {1, 2}) {
        if (store == 2 && (i < 30 || i == 50)) continue;
        const std::string sold = store == 1 && i == 40 ? "" : fmt::format("{}", 10 * store + i % 7);
        text += fmt::format("{},{},{},{}\n", day, store, i % 3, sold);
      }
    }
    write_file_atomically(directory_ / "sales.csv", text);
    return directory_ / "sales.csv";
  }

  static TableInspection inspect(const std::string& path, const std::vector<std::string>& series) {
    DataOptions options;
    options.table.label = {"sold"};
    options.table.windows.time = "day";
    options.table.windows.series = series;
    TableInspection inspection = inspect_table(path, options.table);
    inspection.series = summarise_series_of(inspection, options);
    return inspection;
  }

  test::TemporaryDirectory directory_;
};

TEST_F(SeriesTable, InspectSaysWhatTheSeriesAre) {
  const TableInspection inspection = inspect(write(), {"store"});
  const SeriesSummary& summary = *inspection.series;
  EXPECT_EQ(summary.series, 2);
  EXPECT_EQ(summary.shortest, 69);
  EXPECT_EQ(summary.longest, 100);
  EXPECT_EQ(summary.first, "2024-01-01");
  EXPECT_EQ(summary.last, "2024-04-16");
  const std::string text = to_text(inspection);
  expect_parts(text,
               {"Series of time", "2024-01-01 to 2024-04-16", "1 day, as a rule", "2, of 69 to 100 positions",
                "7 positions (autocorrelation 0.", "lacks", "day     time", "store   series",
                "categorical = [\"store\"]", "time = \"day\"", "series = [\"store\"]"});
  EXPECT_EQ(text.find("day: date"), std::string::npos) << "its form is plain";
  EXPECT_EQ(text.find("on_bad_record"), std::string::npos) << "a window may lack a label";
  const auto json = parse_json<nlohmann::json>(to_json(inspection));
  EXPECT_EQ(json.at("columns").at(3).at("kind"), "label, numeric");
  TableInspection alike = inspection;
  alike.series->shortest = alike.series->median = 100;
  expect_parts(to_text(alike), {"2, of 100 positions each\n"});
  alike.series->series = 1;
  expect_parts(to_text(alike), {"1, of 100 positions\n"});
}

TEST_F(SeriesTable, TwoRecordsOfOneTimeAreRefused) {
  expect_parts(error_text<DataError>([&] { inspect(write(), {}); }), {"have the same time", "data.series"});
}

// One series of so many days, whose season is a week.
class WindowPlan : public testing::Test {
 protected:
  static ForecastPlan plan(Index positions, const WindowOptions& options,
                           std::vector<Season> seasons = {{.positions = 7, .autocorrelation = 0.9}}) {
    TableInspection table{.path = "sales.csv", .table = {}, .options = {}};
    table.series = SeriesSummary{.series = 2,
                                 .shortest = positions,
                                 .median = positions,
                                 .longest = positions,
                                 .first = "",
                                 .last = "",
                                 .step = "1 day",
                                 .notes = {},
                                 .seasons = std::move(seasons)};
    return plan_forecast(table, options);
  }
};

TEST_F(WindowPlan, IsThreeHorizonsOrTwoSeasonsInWholeSeasons) {
  const ForecastPlan usual = plan(730, {.horizon = 28});
  EXPECT_EQ(usual.window, 84);
  EXPECT_EQ(usual.test, 0.15);
  EXPECT_EQ(usual.validation, 0.2);
  EXPECT_EQ(usual.windows, 2 * (730 - 110 - 124 - 84 - 28 + 1));
  EXPECT_EQ(plan(730, {.horizon = 10}).window, 28) << "30, in weeks";
  EXPECT_EQ(plan(730, {.horizon = 3}).window, 14) << "two seasons";
  EXPECT_EQ(plan(730, {.horizon = 10}, {}).window, 30);
  EXPECT_EQ(plan(730, {.window = 50, .horizon = 10}).window, 50) << "as given";
  const std::vector<Season> years{{365, 0.9}, {7, 0.5}};
  EXPECT_EQ(plan(730, {.horizon = 28}, years).season.positions, 7) << "no window can hold a year";
  EXPECT_EQ(plan(3000, {.horizon = 28}, years).season.positions, 365);
}

// Sets of few positions have a horizon at least; then there is no test set, and at last no plan.
TEST_F(WindowPlan, ShrinksWithTheSeries) {
  const ForecastPlan small = plan(150, {.horizon = 28});
  EXPECT_NEAR(small.test * 150, 28, 0.15);
  EXPECT_GE(small.test * 150, 28);
  EXPECT_GE(small.validation * (150 - 28), 28);
  EXPECT_EQ(small.window, 28);
  EXPECT_EQ(plan(139, {.horizon = 28}).test, 0);
  EXPECT_EQ(plan(112, {.horizon = 28}).window, 28);
  expect_parts(error_text<ConfigError>([&] { plan(111, {.horizon = 28}); }),
               {"111 positions", "--horizon 27 would fit"});
  EXPECT_EQ(plan(111, {.horizon = 27}).window, 28) << "half of what 84 positions leave";
  EXPECT_EQ(plan(100, {.window = 44, .horizon = 28}).window, 44);
  expect_parts(error_text<ConfigError>([&] { plan(100, {.window = 45, .horizon = 28}); }),
               {"100 positions", "--window 44 would fit"});
  EXPECT_EQ(plan(100, {.window = 45, .horizon = 27}).window, 45);
}

// Labels with nothing beside them are forecast by one map, each from its own past.
TEST_F(SeriesTable, ConfigsForSeveralLabelsShareOneMap) {
  const auto layers = [&](const std::string& columns, const std::string& more) {
    std::string text = "hour," + columns + "\n";
    for (int i = 0; i < 100; ++i) text += fmt::format("{},{},{}{}\n", i, i % 7, i % 5, more);
    write_file_atomically(directory_ / "two.csv", text);
    DataOptions options;
    options.table.label = {"a", "b"};
    options.table.windows.time = "hour";
    options.table.windows.horizon = 5;
    const InitData data = read_init_data(directory_ / "two.csv", options);
    for (const CommentedSetting& setting : choose_settings(data, choose_task(data, ""), "two")) {
      if (setting.key == "model.layers") return setting.value;
    }
    return std::string();
  };
  EXPECT_EQ(layers("a,b", ""), "\"dense(5, shared=2, init=zero)\"");
  EXPECT_EQ(layers("a,b,price", ",3"), "\"dense(5, shared=2, init=zero)\"") << "a constant is no feature";
  EXPECT_EQ(layers("a,price,b", ",3"), "\"dense(10, init=zero)\"");
}

}  // namespace
}  // namespace lockstep::series_summary_test
