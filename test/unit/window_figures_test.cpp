// Forecasts without a model, errors by position of the horizon, pictures of windows, against a count by hand.
#include "lockstep/train/evaluation/metrics.h"

#include "lockstep/base/file.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/kinds/kind.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::window_figures_test {

constexpr Index kPositions = 20;
constexpr Index kWindow = 5;
constexpr Index kHorizon = 4;
constexpr Index kWindows = kPositions - kWindow - kHorizon + 1;

// Of each series 20 days: x counts them from where the series begins, y is ten times as much.
class WindowFigures : public testing::Test {
 protected:
  std::unique_ptr<RecordSource> open(const std::vector<std::string>& labels,
                                     const std::vector<std::string>& columns = {},
                                     const std::vector<std::string>& series = {"a"}) const {
    std::string text = "day,shop,x,y\n";
    for (std::size_t i = 0; i < series.size(); ++i)
      for (Index p = 0; p < kPositions; ++p) {
        const Index x = p + 100 * static_cast<Index>(i);
        text += fmt::format("2024-03-{:02},{},{},{}\n", p + 1, series[i], x, 10 * x);
      }
    write_file_atomically(file_, text);
    DataOptions data;
    data.test = file_;
    data.format = "csv";
    data.table.label = labels;
    data.table.columns = columns;
    data.table.ignore = {"x", "y"};
    for (const std::string& label : labels) std::erase(data.table.ignore, label);
    data.table.windows = {
        .time = "day", .series = {"shop"}, .window = kWindow, .horizon = kHorizon, .season = 3};
    return open_sets({.data = data, .wanted = {Split::kTest}, .peers = alone()}).test;
  }
  static const WindowSource& windows_of(const std::unique_ptr<RecordSource>& source) {
    return *source->as_windows();
  }
  test::TemporaryDirectory directory_;
  std::string file_ = directory_ / "table.csv";
};

TEST_F(WindowFigures, WhatIsRepeatedIsOffByItsDistance) {
  const auto source = open({"x"});
  EXPECT_EQ(source->info().rows, kWindows);
  const std::vector<NaiveForecast> found = windows_of(source).naive_forecasts();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "the last value");
  EXPECT_EQ(found[0].by_step, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(found[0].absolute, 2.5);
  EXPECT_DOUBLE_EQ(found[0].squared, (1 + 4 + 9 + 16) / 4.0);
  EXPECT_EQ(found[1].name, "the value 3 positions before");
  EXPECT_EQ(found[1].by_step, (std::vector<double>{3, 3, 3, 6})) << "the season is known up to the origin";
  EXPECT_DOUBLE_EQ(found[1].absolute, 3.75);
  EXPECT_DOUBLE_EQ(found[1].squared, (3 * 9 + 36) / 4.0);
}

// The mean over labels is in their units, squares are of what is learnt: the variance of 0 to 19 is 33.25.
TEST_F(WindowFigures, OfScaledLabelsAreInTheirUnits) {
  const auto source = open({"x", "y"}, {"x: standard", "y: standard"});
  const std::vector<NaiveForecast> found = windows_of(source).naive_forecasts();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(found[0].absolute, (2.5 + 25) / 2, 1e-5);
  EXPECT_NEAR(found[0].by_step[3], (4 + 40) / 2.0, 1e-5);
  EXPECT_NEAR(found[0].squared, 7.5 / 33.25, 1e-6);
}

// Rows of outputs and targets.
class Block {
 public:
  Block(std::vector<Scalar> outputs, std::vector<Scalar> targets, Index rows)
      : output_numbers_(std::move(outputs)),
        target_numbers_(std::move(targets)),
        outputs_(output_numbers_.data(), rows, std::ssize(output_numbers_) / rows),
        targets_(target_numbers_.data(), rows, std::ssize(target_numbers_) / rows) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  MetricRows rows() const { return {.outputs = outputs_, .targets = targets_, .weights = {}}; }

 private:
  std::vector<Scalar> output_numbers_, target_numbers_;
  ConstMatrix outputs_, targets_;
};

// Two labels of two positions; the second counts in twos.
TEST(ErrorsByStep, AreSumsOverRowsAndLabels) {
  const ForecastForm form{.form = TargetKind::kValue,
                          .scales = {{}, {}, {.shift = 7, .range = 2}, {.shift = 7, .range = 2}}};
  std::vector<double> sums(2, 0.5);
  form.add_errors(Block({1, 2, 3, 4, 5, 6, 7, 8}, {1, 3, 3, 2, 1, 6, 8, 8}, 2).rows(), sums);
  EXPECT_EQ(sums, (std::vector<double>{0.5 + 0 + 4 + 2 * (0 + 1), 0.5 + 1 + 0 + 2 * (2 + 0)}));
  ForecastForm quantiles{.form = TargetKind::kValue};
  quantiles.form.quantiles = {0.1, 0.5, 0.9};
  sums = {0, 0};
  quantiles.add_errors(Block({1, 2, 3, 4, 5, 6}, {5, 5}, 1).rows(), sums);
  EXPECT_EQ(sums, (std::vector<double>{3, 0})) << "the middle one counts";
  ForecastForm counts{.form = OutputForm(TargetKind::kValue, Link::kLog)};
  counts.add_errors(Block({0}, {5}, 1).rows(), sums);
  EXPECT_EQ(sums[0], 3 + 4) << "of a logarithm its exponential";
}

TEST(ForecastErrors, SayWhetherTheModelIsWorthIt) {
  ForecastErrors errors{.by_step = {1, 2},
                        .naive = {{.name = "the last value", .absolute = 4, .squared = 0.5},
                                  {.name = "the value 7 positions before", .absolute = 2, .squared = 0.25}}};
  EXPECT_EQ(errors.describe_naive(Split::kTest, true),
            "test: repeating the last value has mean_absolute_error 4 (mean_squared_error 0.5 of the scaled "
            "label), the value 7 positions before 2 (0.25)");
  EXPECT_TRUE(errors.model_is_best());
  EXPECT_EQ(
      errors.describe_model(Split::kTest),
      "test: the model's mean_absolute_error 1.5 is 25.0 % below that of repeating the value 7 positions "
      "before");
  errors.by_step = {1, 3};
  EXPECT_FALSE(errors.model_is_best());
  EXPECT_EQ(
      errors.describe_model(Split::kTest),
      "test: repeating the value 7 positions before has mean_absolute_error 2, and the model 2: it is no "
      "better than a forecast that needs no model");
}

// Each rank sees some of the windows; a level is off by one more than that below it.
std::vector<ShownWindow> shown(int ranks, const ForecastForm& form, const RecordSource& source) {
  std::vector<ShownWindow> found;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    std::vector<ShownWindow> windows = choose_windows(*source.as_windows(), form);
    const DatasetInfo& info = source.info();
    for (Index id = comm.rank(); id < info.rows; id += comm.size()) {
      std::vector<Scalar> features(static_cast<std::size_t>(info.features.size()));
      std::vector<Scalar> targets(static_cast<std::size_t>(info.target_columns));
      Matrix x(features.data(), 1, std::ssize(features)), y(targets.data(), 1, std::ssize(targets));
      source.unpack({&id, 1}, {}, x, y);
      std::vector<Scalar> outputs;
      for (const Scalar target : targets)
        for (Index level = 0; level < form.form.outputs_per_target(); ++level)
          outputs.push_back(target + static_cast<Scalar>(1 + level));
      add_forecasts(form, Block(outputs, targets, 1).rows(), {&id, 1}, windows);
    }
    share_forecasts(comm, windows);
    if (comm.rank() == 0) found = windows;
  });
  return found;
}

std::vector<double> counted(double from, std::size_t count) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), from);
  return numbers;
}

TEST_F(WindowFigures, TheLastWindowOfFourSeriesIsShown) {
  const auto source = open({"x"}, {}, {"a", "b", "c", "d", "e"});
  ForecastForm form{.form = TargetKind::kValue};
  form.form.quantiles = {0.1, 0.5, 0.9};
  for (const int ranks : {1, 2, 3}) {
    const std::vector<ShownWindow> windows = shown(ranks, form, *source);
    ASSERT_EQ(windows.size(), 4U);
    EXPECT_EQ(windows[3].name, "d");
    const ShownWindow& second = windows[1];
    EXPECT_EQ(second.name, "b");
    EXPECT_EQ(second.past, counted(111, 5)) << "4 horizons would be more";
    EXPECT_EQ(std::tuple(second.truth, second.low, second.forecast, second.high),
              std::tuple(counted(116, 4), counted(117, 4), counted(118, 4), counted(119, 4)));
    ASSERT_EQ(second.times.size(), 9U);
    EXPECT_EQ(second.times.front(), "2024-03-12");
    EXPECT_EQ(second.times.back(), "2024-03-20");
  }
}

TEST_F(WindowFigures, OfSeveralLabelsOneSeriesIsShownInTheirUnits) {
  const auto source = open({"x", "y"}, {"y: standard"}, {"a", "b"});
  const ForecastForm form{.form = TargetKind::kValue, .scales = read_label_scales(source->schema())};
  const std::vector<ShownWindow> windows = shown(2, form, *source);
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(std::tuple(windows[0].name, windows[0].truth, windows[1].name),
            std::tuple("x", counted(16, 4), "y"));
  ASSERT_EQ(windows[1].past.size(), 5U);
  EXPECT_NEAR(windows[1].past[0], 110, 1e-3);
  EXPECT_NEAR(windows[1].truth[3], 190, 1e-3);
  EXPECT_NEAR(windows[1].forecast[3], 190 + form.scales.back().range, 1e-3) << "one deviation more";
}

}  // namespace lockstep::window_figures_test
