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

Index best(const std::vector<double>& values, const std::vector<Index>& usual = {}) {
  const std::vector<std::vector<double>> series{values};
  const std::vector<Season> found = find_seasons(series, usual);
  return found.empty() ? 0 : found.front().positions;
}

TEST(SeriesSummary, FindsTheSeasonUnderATrendAndNoise) {
  EXPECT_EQ(best(wave(200, 7, 0.3, 5)), 7);
  EXPECT_EQ(best(wave(200, 7, 0.3, -5)), 7);
  EXPECT_EQ(best(wave(400, 23, 0.3)), 23) << "of no calendar";
  EXPECT_EQ(best(wave(1200, 365, 0.3), {7, 365}), 365) << "whose changes are lost in noise";
  EXPECT_EQ(best(wave(200, 7, 0.3), {12}), 7) << "a usual one that is not there";
  EXPECT_EQ(best(wave(20, 7, 0)), 0) << "it is seen three times at least";
  EXPECT_EQ(best(wave(21, 7, 0), {7}), 7);
}

// What repeats exactly, as shifts and rotas do.
TEST(SeriesSummary, FindsAnyLength) {
  for (const Index season : {4, 5, 10, 13, 14, 36, 60}) {
    std::vector<double> values;
    for (Index i = 0; i < 400; ++i)
      values.push_back(10 * static_cast<double>((i % season) * (i % season) % 11));
    EXPECT_EQ(best(values, {5, 7, 365}), season);
  }
}

// Two times the season have the same error, but for noise; a week of unlike days has a lesser one than a day.
TEST(SeriesSummary, TakesTheShorterOfTwoSeasonsThatAreAsGood) {
  EXPECT_EQ(best(wave(2000, 24, 0.5), {24, 168}), 24);
  std::vector<double> weeks = wave(2000, 24, 0.1);
  for (std::size_t i = 0; i < weeks.size(); ++i) weeks[i] *= i % 168 < 120 ? 1 : 0.2;
  EXPECT_EQ(best(weeks, {24, 168}), 168);
  EXPECT_EQ(best(weeks), 168) << "a week is of no calendar here";
}

TEST(SeriesSummary, FindsNoSeasonInNoiseATrendAWalkOrWhatIsConstant) {
  EXPECT_EQ(best(std::vector<double>(100, 3.0)), 0);
  EXPECT_EQ(best(wave(100, 1000, 0, 3)), 0);
  for (const Index count : {40, 100, 500, 3000}) {
    std::vector<double> noise = wave(count, 7, 1);
    const std::vector<double> season = wave(count, 7, 0);
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] -= season[i];
    EXPECT_EQ(best(noise), 0) << count;
    std::vector<double> walk = noise;
    for (std::size_t i = 1; i < walk.size(); ++i) walk[i] += walk[i - 1];
    EXPECT_EQ(best(walk), 0) << count;
    const std::vector<Index> usual = count >= 500 ? std::vector<Index>{5, 7, 365} : std::vector<Index>();
    EXPECT_EQ(best(noise, usual) + best(walk, usual), 0) << count;
  }
}

// By hand: the moving means of three are 2/3, 1/3, 1, ..., and so on; what is left repeats without any
// noise. Of two series the longer one counts by its length, each in its own units.
TEST(SeriesSummary, AutocorrelationAndErrorAreMeansOverSeries) {
  std::vector<double> repeated;
  for (int i = 0; i < 30; ++i) repeated.insert(repeated.end(), {1.0, 0.0, 3.0});
  const std::vector<std::vector<double>> one{repeated};
  EXPECT_NEAR(find_seasons(one).front().autocorrelation, 1, 1e-12);
  EXPECT_EQ(find_seasons(one).front().error, 0);
  std::vector<double> turned;  // what repeats after 6, and after 3 with the other sign
  for (int i = 0; i < 180; ++i) turned.push_back(1000 * (i % 6 < 3 ? i % 3 - 1 : 1 - i % 3));
  const std::vector<std::vector<double>> both{repeated, turned};
  ASSERT_EQ(find_seasons(both).front().positions, 6);
  EXPECT_NEAR(find_seasons(both).front().autocorrelation, 1, 1e-9);
}

TEST(SeriesSummary, ValuesThatAreMissingAreLeftOut) {
  std::vector<double> values = wave(200, 7, 0.1);
  for (std::size_t i = 0; i < values.size(); i += 10) values[i] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(best(values), 7);
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
