// Windows of time over a table, against a count by hand: order, gaps, spans, features and targets.
#include "lockstep/data/time_windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "data/time_axis.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/format.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/loaded.h"
#include "support/note.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::test {
namespace {

// Two series of 20 days in no order; y is 100 * series + day, x is minus that.
class TimeWindows : public testing::Test {
 protected:
  TimeWindows() {
    data_.train = file_;
    data_.format = "csv";
    data_.table.label = {"y"};
    data_.table.scale = "none";
    data_.table.windows = {.time = "day", .series = {"shop"}, .window = 4, .horizon = 3};
    write("");
  }

  static std::string date(int day) { return fmt::format("2024-01-{:02}", day + 1); }

  // Records in an order that is neither that of time nor of series; `more` lines behind them.
  void write(const std::string& more, const std::function<bool(int series, int day)>& leaves_out = {}) {
    std::string text = "shop,day,y,x\n";
    for (int i = 0; i < 40; ++i) {
      const int record = i * 7 % 40;
      const int series = record % 2;
      const int day = record / 2;
      if (leaves_out && leaves_out(series, day)) continue;
      text += fmt::format("{},{},{},{}\n", series == 0 ? "b" : "a", date(day), 100 * series + day,
                          -100 * series - day);
    }
    write_file_atomically(file_, text + more);
  }

  DataSets open(PeerGroup& peers = alone()) const {
    const DataParts parts = parts_beside_files(data_);
    const DataOptions opened = data_of_files(data_, parts);
    const OpenTable table = [&](Split split, const std::string& schema, const HoldOut& held) {
      return choose_format(opened).open({opened, split, 1, peers, schema, held});
    };
    return open_windows(opened, parts, 1, {Split::kTrain, Split::kValidation, Split::kTest}, "", table,
                        peers);
  }
  std::unique_ptr<RecordSource> open_last(const std::string& schema) const {
    const DataOptions opened = data_of_files(data_);
    const OpenTable table = [&](Split split, const std::string& known, const HoldOut& held) {
      return choose_format(opened).open({opened, split, 1, alone(), known, held});
    };
    return open_last_windows(opened, schema, table, alone());
  }

  static Gathered window(const RecordSource& source, Index id) {
    return gather(*load(source, everything(source), {}), source.info(), {id});
  }
  std::string refusal() const {
    return error_text<Error>([&] { open(); });
  }
  static std::string all_notes(const RecordSource& source) {
    std::string text;
    for (const Note& note : source.notes()) {
      if (!note.figures.is_null()) expect_told(note);
      text += note.text + "\n";
    }
    return text;
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_ / "table.csv";
  DataOptions data_;
};

TEST_F(TimeWindows, AWindowHasThePastOfLabelAndColumnsAndItsHorizonAsTargets) {
  const DataSets sets = open();
  EXPECT_EQ(sets.train->info().rows, 2 * (20 - 4 - 3 + 1));
  EXPECT_EQ(sets.validation, nullptr);
  // The series that comes first in the file is the first.
  EXPECT_EQ(window(*sets.train, 0), (Gathered{{0, 1, 2, 3, 0, -1, -2, -3}, {4, 5, 6}}));
  EXPECT_EQ(window(*sets.train, 13), (Gathered{{13, 14, 15, 16, -13, -14, -15, -16}, {17, 18, 19}}));
  EXPECT_EQ(window(*sets.train, 14),
            (Gathered{{100, 101, 102, 103, -100, -101, -102, -103}, {104, 105, 106}}));
}

TEST_F(TimeWindows, RanksCutTheSameWindows) {
  const Gathered expected = window(*open().train, 20);
  run_thread_ranks(3, [&](Communicator& comm) {
    RankPeerGroup peers(comm);
    const DataSets sets = open(peers);
    const Index rows = sets.train->info().rows;
    const auto records = load_records(*sets.train, {},
                                      {.ranks =
                                           [](Index) {
                                             return Range{0, 3};
                                           },
                                       .count = rows},
                                      peers);
    EXPECT_EQ(gather(*records, sets.train->info(), {20}), expected);
  });
}

TEST_F(TimeWindows, StrideTakesOneWindowOfSoMany) {
  data_.table.windows.stride = 5;
  const DataSets sets = open();
  EXPECT_EQ(sets.train->info().rows, 2 * 3);
  EXPECT_EQ(window(*sets.train, 1).targets, (std::vector<Scalar>{9, 10, 11}));
}

// Days 0 to 11 to train, 12 to 15, 16 to 19.
TEST_F(TimeWindows, AHorizonLiesInOneSpanAndThePastMayReachBack) {
  data_.validation = "time(day, from = 2024-01-13, to = 2024-01-17)";
  data_.test_part = "time(day, from = '2024-01-17')";
  const DataSets sets = open();
  EXPECT_EQ(sets.train->info().rows, 2 * 6) << "origins 4 to 9";
  EXPECT_EQ(sets.validation->info().rows, 2 * 2) << "origins 12 and 13";
  EXPECT_EQ(sets.test->info().rows, 2 * 2);
  EXPECT_EQ(window(*sets.train, 5).targets, (std::vector<Scalar>{9, 10, 11}));
  EXPECT_EQ(window(*sets.validation, 0), (Gathered{{8, 9, 10, 11, -8, -9, -10, -11}, {12, 13, 14}}));
  EXPECT_EQ(window(*sets.test, 1).targets, (std::vector<Scalar>{17, 18, 19}));
}

TEST_F(TimeWindows, StatisticsAreThoseOfTheTrainingSpan) {
  data_.table.columns = {"y: standard", "x: standard"};
  data_.test_part = "time(day, 0.2)";
  const TableSchema schema = parse_schema(open().train->schema(), "");
  for (const std::size_t column : {std::size_t{2}, std::size_t{3}}) {
    EXPECT_EQ(schema.columns[column].numbers.count, 2 * 16);
    EXPECT_DOUBLE_EQ(std::abs(schema.columns[column].numbers.mean), 57.5);
  }
}

TEST_F(TimeWindows, WhatIsBehindTheLastSpanIsInNoSet) {
  data_.validation = "time(day, from = 2024-01-13, to = 2024-01-17)";
  const DataSets sets = open();
  EXPECT_EQ(sets.train->info().rows, 2 * 6);
  EXPECT_EQ(sets.validation->info().rows, 2 * 2);
  EXPECT_EQ(sets.test, nullptr);
}

TEST_F(TimeWindows, WholeSeriesMayBeHeldBack) {
  data_.validation = "group(shop, 0.5)";
  const DataSets sets = open();
  EXPECT_EQ(sets.train->info().rows, 14);
  EXPECT_EQ(sets.validation->info().rows, 14);
}

TEST_F(TimeWindows, ColumnsKnownAheadHaveTheirHorizon) {
  data_.table.windows.future = {"x"};
  data_.table.categorical = {"shop"};
  const DataSets sets = open();
  const Gathered first = window(*sets.train, 0);
  EXPECT_EQ(std::vector(first.features.begin(), first.features.begin() + 11),
            (std::vector<Scalar>{0, 1, 2, 3, 0, -1, -2, -3, -4, -5, -6}));
  const std::vector<FeatureColumn> columns =
      feature_columns(sets.train->schema(), sets.train->info().features.size());
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(columns[1].name, "x");
  EXPECT_EQ(columns[1].features, (Range{4, 11}));
  EXPECT_EQ(columns[2].features, (Range{11, 14})) << "one of two shops, or another one";
  EXPECT_EQ(first.features.size(), 14U);
}

TEST_F(TimeWindows, TargetsAreNamedByTheirStep) {
  const std::vector<TargetLabel> labels = read_target_labels(open().train->schema());
  ASSERT_EQ(labels.size(), 3U);
  EXPECT_EQ(labels.front().name, "y+1");
  EXPECT_EQ(labels.back().name, "y+3");
}

TEST_F(TimeWindows, GapsAreNamedAndPositionsTakenAsTheyCome) {
  write("", [](int series, int day) { return series == 0 && (day == 9 || day == 10); });
  const DataSets sets = open();
  expect_parts(all_notes(*sets.train),
               {"lacks 2 times in 1 gap", "2024-01-09 to 2024-01-12 of 'b'", "as they come"});
  EXPECT_EQ(sets.train->info().rows, 12 + 14);
  EXPECT_EQ(window(*sets.train, 5).targets, (std::vector<Scalar>{11, 12, 13}));
}

TEST_F(TimeWindows, FilledTimesRepeatWhatWasBeforeAndAreNeverForecast) {
  write("", [](int series, int day) { return series == 0 && day == 9; });
  data_.table.windows.fill = FillGaps::kLast;
  const DataSets sets = open();
  EXPECT_EQ(sets.train->info().rows, (14 - 3) + 14);
  expect_parts(all_notes(*sets.train), {"they are filled", "3 windows left out"});
  const Gathered after = window(*sets.train, 3);  // the first whose horizon is behind the gap: origin 10
  EXPECT_EQ(after.targets, (std::vector<Scalar>{10, 11, 12}));
  EXPECT_EQ(std::vector(after.features.begin(), after.features.begin() + 4),
            (std::vector<Scalar>{6, 7, 8, 8}));
  data_.table.windows.fill = FillGaps::kZero;
  EXPECT_EQ(open().train->info().rows, 14 + 14);
  EXPECT_EQ(window(*open().train, 3).targets, (std::vector<Scalar>{7, 8, 0}));
}

TEST_F(TimeWindows, AWindowWithAMissingLabelIsLeftOut) {
  std::string more;
  for (int day = 0; day < 10; ++day) more += fmt::format("c,{},{},1\n", date(day), day == 2 ? "" : "5");
  write(more);
  const DataSets sets = open();
  EXPECT_EQ(sets.train->info().rows, 2 * 14 + 1) << "days 3 to 9 are one window";
  expect_parts(all_notes(*sets.train), {"3 windows left out, as a label is missing in them"});
}

TEST_F(TimeWindows, RepeatingTheLastValueIsMeasured) {
  data_.table.windows.season = 2;
  const auto sets = open();
  const std::vector<NaiveForecast> forecasts = sets.train->as_windows()->naive_forecasts();
  ASSERT_EQ(forecasts.size(), 2U);
  EXPECT_EQ(forecasts[0].by_step, (std::vector<double>{1, 2, 3}));
  EXPECT_DOUBLE_EQ(forecasts[0].absolute, 2);
  EXPECT_DOUBLE_EQ(forecasts[0].squared, (1.0 + 4 + 9) / 3);
  EXPECT_EQ(forecasts[1].by_step, (std::vector<double>{2, 2, 4}));
}

TEST_F(TimeWindows, TheLastWindowForecastsWhatIsBehindTheEnd) {
  const std::string schema = open().train->schema();
  const auto last = open_last(schema);
  ASSERT_EQ(last->info().rows, 2);
  EXPECT_EQ(last->info().target_columns, 0);
  EXPECT_EQ(window(*last, 0).features, (std::vector<Scalar>{16, 17, 18, 19, -16, -17, -18, -19}));
  EXPECT_EQ(last->as_windows()->time_of(0, 0), "2024-01-21");
  EXPECT_EQ(last->as_windows()->time_of(1, 2), "2024-01-23");
  EXPECT_EQ(last->as_windows()->series_of(1), (std::vector<std::string>{"a"}));
}

TEST_F(TimeWindows, RecordsWithoutALabelAtTheEndAreWhatIsForecast) {
  const std::string schema = open().train->schema();
  std::string more;
  for (int day = 20; day < 23; ++day) more += fmt::format("a,{0},,7\nb,{0},,7\n", date(day));
  write(more);
  EXPECT_EQ(open_last(schema)->as_windows()->time_of(0, 0), "2024-01-21");
  EXPECT_EQ(window(*open_last(schema), 0).features.front(), 16);
}

TEST_F(TimeWindows, MonthsOfTheCalendarAreSteps) {
  std::string text = "day,y\n";
  for (int month = 0; month < 20; ++month)
    text += fmt::format("{}-{:02}-01,{}\n", 2022 + month / 12, month % 12 + 1, month);
  write_file_atomically(file_, text);
  data_.table.windows.series = {};
  const DataSets sets = open();
  EXPECT_EQ(all_notes(*sets.train).find("lacks"), std::string::npos);
  EXPECT_EQ(open_last(sets.train->schema())->as_windows()->time_of(0, 2), "2023-11-01");
}

TEST_F(TimeWindows, TwoDaysOfOneMonthAreNoStepOfMonths) {
  std::string text = "day,y\n";
  for (int month = 0; month < 20; ++month)
    text += fmt::format("{}-{:02}-28,{}\n", 2022 + month / 12, month % 12 + 1, month);
  write_file_atomically(file_, text + "2023-08-30,20\n");
  data_.table.windows.series = {};
  expect_parts(all_notes(*open().train), {"1 step that is no multiple", "2023-08-28 to 2023-08-30"});
}

TEST_F(TimeWindows, RefusesWhatCannotBe) {
  write("a,2024-01-03,5,5\n");
  expect_parts(refusal(), {"have the same time, 2024-01-03", "1 pair", "of 'a'"});
  write("");
  data_.table.windows.series = {};
  expect_parts(refusal(), {"20 pairs", "data.series"});
  data_.table.windows.series = {"shop"};
  data_.table.windows.window = 18;
  expect_parts(refusal(), {"a window of 18 and its horizon of 3", "need 21", "has 20 positions"});
  data_.table.windows.window = 4;
  data_.table.windows.future = {"y"};
  expect_parts(refusal(), {"data.future = 'y'", "label"});
  data_.table.windows.future = {"x"};
  expect_parts(error_text<Error>([&] { open_last(open().train->schema()); }),
               {"series 'b'", "0 positions are known ahead", "expected 3"});
  data_.table.windows.future = {};
  data_.validation = "share(0.2)";
  expect_parts(refusal(), {"windows overlap", "time(day, 0.2)"});
  data_.validation = "time(day, from = 2025-01-01)";
  expect_parts(refusal(), {"40 of the 40 records come before that span"});
  data_.validation = "";
  data_.table.windows.season = 5;
  expect_parts(refusal(), {"data.season = 5 is longer than data.window = 4"});
  data_.table.windows.season = 0;
  write("a,03/02/2024,5,5\n");
  expect_parts(refusal(), {"'03/02/2024' in record 40", "dates of one form"});
}

}  // namespace
}  // namespace lockstep::test
