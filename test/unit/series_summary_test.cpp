// The season that is found under noise, and the windows of a plan; of tables: cases/series.case.
#include "lockstep/data/windows/time_windows.h"

#include "app/init/init.h"
#include "lockstep/base/random.h"
#include "support/common.h"

namespace lockstep::test::series_summary_test {

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

// Of two series of 730 days: a test set of 110, and of the rest a validation set of 124.
TEST(WindowPlan, CountsTheWindowsToTrainOn) {
  TableInspection table{.path = "sales.csv", .table = {}, .options = {}};
  table.series = SeriesSummary{.series = 2,
                               .shortest = 730,
                               .median = 730,
                               .longest = 730,
                               .first = "",
                               .last = "",
                               .step = "1 day",
                               .notes = {},
                               .seasons = {{.positions = 365, .autocorrelation = 0.9}, {7, 0.5}}};
  const ForecastPlan plan = plan_forecast(table, {.horizon = 28});
  EXPECT_EQ(plan.windows, 2 * (730 - 110 - 124 - 84 - 28 + 1));
  EXPECT_EQ(plan.season.positions, 7) << "no window can hold a year";
}

}  // namespace lockstep::test::series_summary_test
