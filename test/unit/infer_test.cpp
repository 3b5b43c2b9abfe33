// The kind of a column whose values are nearly all numbers, or only look like numbers.
#include "lockstep/data/table/schema/scan.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <functional>

#include "data/table/schema/encoder.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/table/inspect/inspect.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

using namespace test;

class Infer : public testing::Test {
 protected:
  // A table of so many records whose column x has the texts that `value` gives, beside a label and a number.
  void write(Index rows, const std::function<std::string(Index)>& value, char separator = ',') {
    std::ofstream file(path_, std::ios::binary);
    file << "x" << separator << "y" << separator << "z\n";
    for (Index i = 0; i < rows; ++i) file << value(i) << separator << i % 2 << separator << i % 7 << "\n";
  }
  LearntSchema learn() {
    const std::string paths[] = {path_};
    return learn_schema(open_table_text(paths, options_, alone()), options_, {}, alone());
  }
  TableColumn column() { return learn().schema.columns[0]; }
  std::string doubts() { return fmt::format("{}", fmt::join(learn().doubts, "\n")); }
  TableInspection inspect() { return inspect_table(path_, options_); }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "t.csv";
  TableOptions options_{.label = {"y"}};
};

TEST_F(Infer, TheUsualTextsForAMissingNumberAreKnown) {
  for (const char* text : {"None", "n/a", "N/a", "NAN", "<NA>", "#N/A", "#NA", "-nan", ".", "\\N", "NULL"}) {
    write(600, [&](Index i) { return i % 20 == 3 ? text : fmt::format("{}", 18 + i % 60); });
    const LearntSchema learnt = learn();
    EXPECT_EQ(learnt.schema.columns[0].kind, ColumnKind::kNumeric) << text;
    EXPECT_EQ(learnt.schema.columns[0].missing, 30) << text;
    EXPECT_TRUE(learnt.doubts.empty()) << text;
  }
}

TEST_F(Infer, OneTextAmongNumbersStandsForAMissingOneAndIsNamed) {
  for (const Index every : {3, 10, 50}) {
    write(600, [&](Index i) { return i % every == 1 ? "unbekannt" : fmt::format("{}.25", i); });
    const TableColumn found = column();
    EXPECT_EQ(found.kind, ColumnKind::kNumeric) << every;
    EXPECT_EQ(found.missing, 600 / every) << every;
    EXPECT_EQ(found.missing_values, std::vector<std::string>{"unbekannt"});
    expect_parts(doubts(),
                 {"'x'", "'unbekannt'", fmt::format("{} times", 600 / every), "data.missing_values"});
    const TableInspection inspection = inspect();
    expect_parts(to_text(inspection), {"Suspicious", "'unbekannt'", "numeric = [\"x\", \"z\"]"});
    expect_parts(data_section(inspection), {"missing_values = [", "\"NA\"", "\"unbekannt\"]"});
    EXPECT_EQ(data_section(inspection).find("on_bad_record"), std::string::npos);
  }
}

TEST_F(Infer, SeveralTextsAmongNumbersAreCategoriesButNotInSilence) {
  write(600,
        [](Index i) { return i % 3 == 0 ? fmt::format("size {}", i % 12) : fmt::format("{}", 30 + i % 20); });
  EXPECT_EQ(column().kind, ColumnKind::kCategorical);
  expect_parts(doubts(), {"66.7 % of the values are numbers", "'size 0'", "taken as a category"});
  write(600,
        [](Index i) { return i % 3 != 0 ? fmt::format("size {}", i % 12) : fmt::format("{}", 30 + i % 20); });
  EXPECT_EQ(doubts(), "") << "most of them are no numbers";
}

TEST_F(Infer, OtherNotationsOfNumbersAreReadAndNamed) {
  struct Case {
    const char* term;
    char separator;
    std::function<std::string(Index)> value;
    double second;  // of the column
  };
  const std::vector<Case> cases{
      {"number(decimal=comma)", ';', [](Index i) { return fmt::format("{},5", i); }, 1.5},
      {"number(decimal=comma)", ';', [](Index i) { return fmt::format("{},5", i % 40); }, 1.5},
      {"number(decimal=comma)", ',', [](Index i) { return fmt::format("\"{},5\"", i); }, 1.5},
      {"number(thousands=comma)", ',', [](Index i) { return fmt::format("\"{},500\"", i); }, 1500},
      {"number(suffix=\"%\")", ',', [](Index i) { return fmt::format("{}.5%", i); }, 1.5},
      {"number(prefix=\"$\")", ',', [](Index i) { return fmt::format("${}.5", i); }, 1.5},
      {"number(thousands=apostrophe)", ',', [](Index i) { return fmt::format("{}\u2019500", i); }, 1500},
      {"number(thousands=comma)", ',', [](Index i) { return fmt::format("\"({},500)\"", i); }, -1500},
      {"number()", ',', [](Index i) { return fmt::format("\u2212{}.5", i); }, -1.5},
      {"number()", ',', [](Index i) { return fmt::format("{}.5-", i); }, -1.5}};
  for (const Case& each : cases) {
    write(400, each.value, each.separator);
    const TableColumn found = column();
    ASSERT_EQ(found.kind, ColumnKind::kNumeric) << each.term;
    ASSERT_TRUE(found.notation) << each.term;
    EXPECT_EQ(found.notation->term(), each.term);
    EXPECT_EQ(parse_number(fmt::format("{}", each.value(1).starts_with('"')
                                                 ? each.value(1).substr(1, each.value(1).size() - 2)
                                                 : each.value(1)),
                           *found.notation),
              each.second);
    EXPECT_EQ(found.numbers.count, 400) << each.term;
    expect_parts(doubts(), {"'x'", "numbers written with"});
    // The section of an inspection says it, and with it there is no doubt left.
    const TableInspection inspection = inspect();
    std::string in_config;
    for (const char c : std::string(each.term))
      in_config += c == '"' ? std::string("\\\"") : std::string(1, c);
    expect_parts(data_section(inspection), {fmt::format("columns = [\"x: {}\"", in_config)});
    options_.columns = {fmt::format("x: {}", each.term)};
    EXPECT_EQ(doubts(), "") << each.term;
    EXPECT_EQ(column().notation, found.notation);
    options_.columns.clear();
  }
}

TEST_F(Infer, TheNotationOfAllColumnsIsAnOption) {
  write(
      300, [](Index i) { return fmt::format("{}.234,5", i % 200); }, ';');
  options_.decimal = ",";
  options_.thousands = ".";
  EXPECT_EQ(column().notation, (NumberNotation{.decimal = ',', .thousands = '.'}));
  EXPECT_EQ(column().numbers.max, 199234.5);
  EXPECT_EQ(doubts(), "");
  options_.thousands = ",";
  expect_parts(error_text<ConfigError>([&] { learn(); }),
               {"data.decimal and data.thousands", "the same sign"});
}

TEST_F(Infer, CodesStayWhatTheyAre) {
  write(300, [](Index i) { return std::vector{"01234", "1234", "001234"}[static_cast<std::size_t>(i % 3)]; });
  EXPECT_EQ(column().kind, ColumnKind::kCategorical);
  EXPECT_EQ(column().values.size(), 3U);
  expect_parts(doubts(), {"'001234'", "taken as codes", "data.numeric"});
  write(300, [](Index i) { return fmt::format("{}", 1234567890123456789 + i % 4); });
  EXPECT_EQ(column().values.size(), 4U);
  expect_parts(doubts(), {"digits", "taken as codes"});
  write(3000, [](Index i) { return fmt::format("{:05}", i); });
  EXPECT_EQ(column().encoding, Encoding::kHash) << "too many to count here";
  write(300, [](Index i) { return fmt::format("{:06.2f}", static_cast<double>(i)); });
  EXPECT_EQ(column().kind, ColumnKind::kNumeric) << "padded numbers with a point are none";
  write(300, [](Index i) { return fmt::format("{}", i); });
  EXPECT_EQ(doubts(), "");
}

TEST_F(Infer, DatesBecomeNumbersAndCycles) {
  write(300, [](Index i) { return fmt::format("2024-{:02}-{:02}", 1 + i % 12, 1 + i % 28); });
  const TableColumn found = column();
  ASSERT_TRUE(found.date);
  EXPECT_EQ(found.date->term(), "date(ymd, day, year, weekday)");
  EXPECT_EQ(found.width(), 5);
  EXPECT_EQ(found.numbers.min, 19723) << "days since 1970";
  EXPECT_EQ(doubts(), "");
  expect_parts(data_section(inspect()), {"columns = [\"x: date(ymd, day, year, weekday)\""});
  write(300, [](Index i) { return fmt::format("{}.12.2024 {:02}:30", 1 + i % 31, i % 24); });
  EXPECT_EQ(column().date->term(), "date(dmy, day, year, weekday, hour)");
  write(300, [](Index i) { return fmt::format("{:02}:30", i % 24); });
  EXPECT_EQ(column().date->term(), "date(time, hour)");
  EXPECT_EQ(to_json(parse_schema(to_json(learn().schema), "schema")), to_json(learn().schema));
}

TEST_F(Infer, DatesThatMayBeReadInTwoWaysAreAskedFor) {
  write(300, [](Index i) { return fmt::format("{}/{}/2024", 1 + i % 12, 1 + i % 11); });
  EXPECT_EQ(column().kind, ColumnKind::kIgnored);
  expect_parts(doubts(), {"'x' is ignored", "all days may be months", "date(dmy)", "date(mdy)"});
  options_.columns = {"x: date(mdy, day)"};
  EXPECT_EQ(column().width(), 1);
  EXPECT_EQ(doubts(), "");
  options_.columns = {"x: date(ymd)"};
  expect_parts(error_text<DataError>([&] { learn(); }), {"line 2", "'1/1/2024'", "a date"});
}

TEST_F(Infer, DatesOfAllFormsAreFound) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"date(mdy, day, year, weekday, hour)", "{0:%m}/{0:%d}/{0:%Y} {0:%I}:{0:%M} {0:%p}"},
      {"date(mdy, day, year, weekday)", "\"{0:%A}, {0:%B} {0:%d}, {0:%Y}\""},
      {"date(dmy, day, year, weekday, hour)", "\"{0:%a}, {0:%d} {0:%b} {0:%Y} {0:%H}:{0:%M}:{0:%S} +0000\""},
      {"date(ymd, day, year, weekday, hour)", "{0:%Y}-{0:%m}-{0:%d} {0:%H}:{0:%M}:{0:%S} UTC"},
      {"date(ymd, day, year, weekday, hour)", "\"{0:%Y}-{0:%m}-{0:%d} {0:%H}:{0:%M}:{0:%S},123\""},
      {"date(week, day, year, weekday)", "{0:%G}-W{0:%V}-{0:%u}"},
      {"date(ordinal, day, year, weekday)", "{0:%Y}-{0:%j}"},
      {"date(my, day, year)", "{0:%b}-{0:%y}"},
      {"date(ym, day, year)", "{0:%Y}-{0:%m}"}};
  for (const auto& [term, format] : cases) {
    write(300, [format = format](Index i) {
      const std::time_t time = 1609459200 + i * (2 * 86400 + 37 * 60);
      return fmt::format(fmt::runtime(format), fmt::gmtime(time));
    });
    const TableColumn found = column();
    ASSERT_TRUE(found.date) << format;
    EXPECT_EQ(found.date->term(), term) << format;
    EXPECT_EQ(found.numbers.count, 300);
    EXPECT_NEAR(found.numbers.min, 18628, 1) << format;
    EXPECT_EQ(doubts(), "");
  }
}

TEST_F(Infer, OddValuesAmongDatesAreTreatedAsAmongNumbers) {
  const auto day = [](Index i) { return fmt::format("2024-{:02}-{:02}", 1 + i % 12, 1 + i % 28); };
  write(600, [&](Index i) { return i % 20 == 1 ? "unknown" : day(i); });
  EXPECT_EQ(column().missing, 30);
  expect_parts(doubts(), {"95 % of the values are dates, and 'unknown' (30 times) stands for a missing one",
                          "data.missing_values", "read as date(ymd"});
  write(600, [&](Index i) { return i % 20 == 1 ? "-1" : day(i); });
  EXPECT_EQ(column().missing_values, std::vector<std::string>{"-1"});
  for (const char* text : {"NaT", "0000-00-00", "0000-00-00 00:00:00"}) {
    write(600, [&](Index i) { return i % 3 == 1 ? text : day(i); });
    EXPECT_EQ(column().missing, 200) << text;
    EXPECT_EQ(doubts(), "") << text;
  }
  write(600, [&](Index i) { return i == 7 ? "31.12.2024" : day(i); });
  EXPECT_EQ(column().kind, ColumnKind::kIgnored);
  expect_parts(doubts(), {"dates of more than one form", "date(ymd)", "'31.12.2024' in that of date(dmy)"});
  write(600, [&](Index i) { return i % 2 == 0 ? fmt::format("batch {}", i % 40) : day(i); });
  expect_parts(doubts(), {"50 % of the values are dates, but not others", "'batch 0'", "data.columns"});
  options_.on_bad_record = OnBadRecord::kSkip;
  write(600, [&](Index i) { return i == 7 ? "2024-02-30" : day(i); });
  EXPECT_TRUE(column().date);
  expect_parts(doubts(), {"1 value is no date, such as '2024-02-30'", "those records are bad"});
}

TEST_F(Infer, ATextForAMissingValueIsNoNumberAndNoDate) {
  options_.missing_values = {"-999", "9999-12-31"};
  write(300, [](Index i) { return i % 3 == 0 ? "-999" : fmt::format("{}", i); });
  EXPECT_EQ(column().missing, 100);
  EXPECT_EQ(column().numbers.min, 1);
  write(300, [](Index i) { return i % 3 == 0 ? "9999-12-31" : fmt::format("2024-01-{:02}", 1 + i % 28); });
  EXPECT_EQ(column().missing, 100);
  EXPECT_EQ(column().numbers.max, 19750);
  // A schema of earlier versions does not name them in the column, and reads them as before.
  EXPECT_TRUE(std::ranges::count(column().missing_values, "9999-12-31") == 1);
}

TEST_F(Infer, YearsOfTwoDigitsAreSaidAndWarnedOf) {
  write(300, [](Index i) { return fmt::format("{}.1.{:02}", 1 + i % 28, 30 + i % 70); });
  const std::string rule = "years of two digits: 69 to 99 are 19xx, 00 to 68 are 20xx; the latest is 2068-01";
  expect_parts(doubts(), {rule, "in the future", "date(dmy, before="});
  expect_parts(to_text(inspect()),
               {rule, "1969-01-", " to 2068-01-", "columns = [\"x: date(dmy, day, year, weekday, before="});
  options_.columns = {"x: date(dmy)"};
  expect_parts(doubts(), {rule});
  options_.strict = true;
  expect_parts(error_text<DataError>([&] { learn(); }), {"data.strict", rule});
  options_.strict = false;
  options_.columns = {"x: date(dmy, before=2005)"};
  EXPECT_EQ(doubts(), "");
  const LearntSchema learnt = learn();
  EXPECT_EQ(write_date(learnt.schema.columns[0].numbers.max).substr(0, 4), "1999");
  EXPECT_EQ(write_date(learnt.schema.columns[0].numbers.min).substr(0, 4), "1930");
  EXPECT_EQ(parse_schema(to_json(learnt.schema), "schema").columns[0].date, learnt.schema.columns[0].date);
  options_.columns = {};
  write(300, [](Index i) { return fmt::format("{}.1.{:02}", 1 + i % 28, 70 + i % 30); });
  EXPECT_EQ(doubts(), "") << "none is in the future";
  expect_parts(learn().remarks.back().text, {"years of two digits", "the latest is 1999-01"});
}

TEST_F(Infer, AnInspectionShowsTimesAmongNumbersAndFarDates) {
  const auto looks = [&](const std::function<std::string(Index)>& value) {
    write(300, value);
    return to_text(inspect());
  };
  const std::vector<std::pair<const char*, std::function<std::string(Index)>>> cases{
      {"date(ymd)", [](Index i) { return fmt::format("2021{:02}{:02}", 1 + i % 12, 1 + i % 28); }},
      {"date(epoch)", [](Index i) { return fmt::format("{}", 1609459200 + i * 4000); }},
      {"date(epoch_ms)", [](Index i) { return fmt::format("{}", (1609459200 + i * 4000) * 1000); }},
      {"date(epoch_us)", [](Index i) { return fmt::format("{}", (1609459200 + i * 4000) * 1000000); }},
      {"date(excel)", [](Index i) { return fmt::format("{}", 44197 + i); }}};
  for (const auto& [term, value] : cases) {
    expect_parts(looks(value), {"look like times", fmt::format("as {} they are from 2021-01-01", term),
                                fmt::format("columns = [\"x: {}\"]", term)});
  }
  const std::vector<std::function<std::string(Index)>> others{
      [](Index i) { return fmt::format("{}", 44197 + i % 20); },
      [](Index i) { return fmt::format("{}", 20219901 + i); },
      [](Index i) { return fmt::format("{}", 1000 + i); }};
  for (const auto& value : others) {
    EXPECT_EQ(looks(value).find("look like times"), std::string::npos) << value(0);
  }
  const auto day = [](Index i) {
    return fmt::format("{}-{:02}-{:02}", 1930 + i % 70, 1 + i % 12, 1 + i % 28);
  };
  for (const char* far : {"9999-12-31", "1900-01-01"}) {
    expect_parts(looks([&](Index i) { return i % 10 == 0 ? far : day(i); }),
                 {fmt::format("30 of 300 dates are {}, far from the others", far), "data.missing_values"});
  }
  EXPECT_EQ(looks(day).find("far from"), std::string::npos);
  EXPECT_EQ(looks([&](Index i) { return i == 0 ? "9999-12-31" : day(i); }).find("far from"),
            std::string::npos);
}

TEST_F(Infer, WordsOfADateAreChecked) {
  write(300, [](Index i) { return fmt::format("2024-01-{:02}", 1 + i % 28); });
  const auto error = [&](const std::string& text) {
    options_.columns = {text};
    return error_text<ConfigError>([&] { learn(); });
  };
  expect_parts(error("x: date"), {"a form of dates is missing"});
  expect_parts(error("x: date(iso)"),
               {"'iso'", "ymd, dmy, mdy, time, week, ordinal, ym, my, epoch, epoch_ms"});
  expect_parts(error("x: date(ymd, before=2010)"), {"'before'", "years of two digits", "date(ymd) has none"});
  expect_parts(error("x: date(dmy, before=99)"), {"'before'", "at least 100"});
  expect_parts(error("x: date(dmy, before=99999)"), {"'before' is 99999"});
  expect_parts(error("x: date(ymd, century)"), {"'century'", "day_of_year", "weekday"});
  expect_parts(error("x: date(time, day)"), {"a time of day has no 'day'"});
  expect_parts(error("x: date(time, day_of_year)"), {"a time of day has no 'day_of_year'"});
  expect_parts(error("y: date(ymd)"), {"'y'", "the label", "a date"});
}

// Features of cells of the column x.
class DateFeatures : public Infer {
 protected:
  auto encoder(const std::string& parts) {
    write(2, [](Index i) { return i == 0 ? "1970-01-01T06:00" : "NA"; });
    options_.columns = {fmt::format("x: date(ymd, {}) none", parts)};
    options_.ignore = {"z"};
    return [schema = learn().schema](const Cell& cell) {
      const Encoder encoder(schema, false);
      std::vector<std::byte> packed(static_cast<std::size_t>(encoder.record_bytes()));
      std::vector<Index> unseen(3);
      const Cell cells[] = {cell, {}, {}};
      encoder.pack(cells, packed.data(), unseen);
      std::vector<Scalar> features(static_cast<std::size_t>(encoder.features()));
      encoder.unpack(packed.data(), features.data(), nullptr);
      return features;
    };
  }
};

TEST_F(DateFeatures, AreItsDayAndPointsOnCircles) {
  const auto encode = encoder("day, hour, month");
  const std::vector<Scalar> features = encode({.is_number = true, .number = 0.25});
  ASSERT_EQ(features.size(), 5U);
  const std::vector<Scalar> expected{0.25F, 1, 0, 0, 1};  // a quarter past the start of the day; January
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(features[i], expected[i], 1e-6) << i;
  EXPECT_EQ(encode({.missing = true}), (std::vector<Scalar>{0.25F, 0, 0, 0, 0}))
      << "the mean, and no direction";
}

TEST_F(DateFeatures, HaveOneForEachDayOfTheYear) {
  const auto encode = encoder("day_of_year, hour");
  const double christmas = *parse_date("2023-12-25T06:00", DateForm::kYmd);
  std::vector<Scalar> features = encode({.is_number = true, .number = christmas});
  ASSERT_EQ(features.size(), 368U);
  EXPECT_NEAR(features[366], 1, 1e-6) << "the hour comes behind them";
  for (std::size_t i = 0; i < 366; ++i) EXPECT_EQ(features[i], i == 359 ? 1 : 0) << i;
  EXPECT_EQ(encode({.missing = true}), std::vector<Scalar>(368)) << "no day";
}

TEST_F(Infer, StrictEndsTheRunWhereValuesMayBeMisread) {
  options_.strict = true;
  write(300, [](Index i) { return fmt::format("{}", i); });
  EXPECT_EQ(column().kind, ColumnKind::kNumeric);
  write(300, [](Index i) { return fmt::format("${}", i); });
  expect_parts(error_text<DataError>([&] { learn(); }), {"t.csv", "data.strict", "'x'", "'$0'"});
  options_.columns = {"x: number(prefix='$')"};
  EXPECT_EQ(column().numbers.count, 300);
}

TEST_F(Infer, ASchemaKeepsNotationsAndTextsForMissingNumbers) {
  write(
      300, [](Index i) { return i % 10 == 0 ? "k.A." : fmt::format("{},5 %", i); }, ';');
  const TableSchema schema = learn().schema;
  const TableSchema read = parse_schema(to_json(schema), "schema");
  EXPECT_EQ(read.columns[0].notation, schema.columns[0].notation);
  EXPECT_EQ(read.columns[0].missing_values, std::vector<std::string>{"k.A."});
  EXPECT_EQ(to_json(read), to_json(schema));
}

TEST_F(Infer, AnInspectionFindsTheEncoding) {
  write(10, [](Index i) { return fmt::format("K\xf6ln {}", i % 2); });
  const TableInspection inspection = inspect();
  expect_parts(to_text(inspection), {"Suspicious", "no UTF-8, and read as windows-1252", "'K\xc3\xb6ln 0'"});
  expect_parts(data_section(inspection), {"encoding = \"windows-1252\""});
  expect_parts(error_text<DataError>([&] { learn(); }), {"line 2", "data.encoding = \"windows-1252\""});
  options_.encoding = "windows-1252";
  EXPECT_EQ(column().values.size(), 2U);
  write(10, [](Index i) { return fmt::format("K\xc3\xb6ln {}", i % 2); });
  options_.encoding = "auto";
  EXPECT_EQ(data_section(inspect()).find("encoding"), std::string::npos);
}

TEST_F(Infer, NamesWithCommasCanStandInTheConfig) {
  std::ofstream(path_) << "\"a,b\",y\n1,0\n2,1\n";
  expect_parts(data_section(inspect()), {"numeric = [\"a,b\"]"});
}

TEST_F(Infer, WordsOfANotationAreChecked) {
  write(300, [](Index i) { return fmt::format("{}", i); });
  const auto error = [&](const std::string& word) {
    options_.columns = {"x: " + word};
    return error_text<ConfigError>([&] { learn(); });
  };
  expect_parts(error("number(decimal=semicolon)"), {"'decimal' is 'semicolon', expected point or comma"});
  expect_parts(error("number(decimal=none)"), {"'decimal'", "expected point or comma"});
  expect_parts(error("number(thousands=x)"), {"'thousands' is 'x'"});
  expect_parts(error("number(decimal=',', thousands=comma)"), {"the same sign"});
  expect_parts(error("number(prefix='$)"), {"in quotes"});
  expect_parts(error("number(mark=1)"), {"mark=1"});
}

}  // namespace
}  // namespace lockstep
