// Dates as people and programs write them.
#include "lockstep/data/table/values/notation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lockstep/data/table/values/number.h"
#include "lockstep/data/table/values/schema.h"
#include "support/torch_references.h"

namespace lockstep::date_test {
namespace {

TEST(Date, AreReadInTheirForm) {
  struct Case {
    const char* text;
    DateForm form;
    double days;
  };
  const std::vector<Case> cases{{"1970-01-01", DateForm::kYmd, 0},
                                {"2024-12-31", DateForm::kYmd, 20088},
                                {"2024/12/31", DateForm::kYmd, 20088},
                                {"2024-1-3", DateForm::kYmd, 19725},
                                {"1969-12-31", DateForm::kYmd, -1},
                                {"2000-02-29", DateForm::kYmd, 11016},
                                {"2024-12-31 12:00", DateForm::kYmd, 20088.5},
                                {"2024-12-31T18:00:00", DateForm::kYmd, 20088.75},
                                {"2024-12-31T18:00:00.000Z", DateForm::kYmd, 20088.75},
                                {"2024-12-31T18:00+06:00", DateForm::kYmd, 20088.5},
                                {"2024-12-31 12:00 -0600", DateForm::kYmd, 20088.75},
                                {"31.12.2024", DateForm::kDmy, 20088},
                                {"31/12/24", DateForm::kDmy, 20088},
                                {"31-12-2024 12:00", DateForm::kDmy, 20088.5},
                                {"31 Dec 2024", DateForm::kDmy, 20088},
                                {"31-DEC-24", DateForm::kDmy, 20088},
                                {"31december2024", DateForm::kDmy, 20088},
                                {"1.1.70", DateForm::kDmy, 0},
                                {"1.1.69", DateForm::kDmy, -365},  // two digits are of 1969 to 2068
                                {"1/1/69", DateForm::kMdy, -365},
                                {"1.1.68", DateForm::kDmy, 35794},
                                {"1.1.00", DateForm::kDmy, 10957},
                                {"31.12.99", DateForm::kDmy, 10956},
                                {"12/31/2024", DateForm::kMdy, 20088},
                                {"Dec 31, 2024", DateForm::kMdy, 20088},
                                {"12:00", DateForm::kTime, 0.5},
                                {"6:00:00", DateForm::kTime, 0.25},
                                {"23:59:60", DateForm::kTime, 1},
                                {"0:00:21.6", DateForm::kTime, 0.00025},
                                {"0:00", DateForm::kTime, 0},
                                {"24:00", DateForm::kTime, 1},  // the end of the day
                                {"20241231", DateForm::kYmd, 20088},
                                {"20241231.0", DateForm::kYmd, 20088},
                                {"20241231060000", DateForm::kYmd, 20088.25},
                                {"2020-W53-5", DateForm::kWeek, 18628},
                                {"1st January 1970", DateForm::kDmy, 0},
                                {"January 2nd, 1970", DateForm::kMdy, 1},
                                {"2024-12-31T06:00+01:00[Europe/Berlin]", DateForm::kYmd, 20088 + 5.0 / 24},
                                {"2024-12-31 6:00 p.m.", DateForm::kYmd, 20088.75},
                                {"1970-W01", DateForm::kWeek, -3},
                                {"44197.5", DateForm::kExcel, 18628.5},
                                {"86400", DateForm::kEpoch, 1},
                                {"345600000000", DateForm::kEpoch, 4e6},
                                {"-43200", DateForm::kEpoch, -0.5}};
  for (const Case& each : cases) {
    const auto days = parse_date(each.text, each.form);
    ASSERT_TRUE(days) << each.text;
    EXPECT_DOUBLE_EQ(*days, each.days) << each.text;
  }
}

TEST(Date, OtherTextsAreNone) {
  for (const char* text : {"",
                           "2024",
                           "2024-13-01",
                           "2023-02-29",
                           "2024-12-31x",
                           "2024-12-31 ",
                           "24-12-31",
                           "2024-12",
                           "2024-12-31T",
                           "2024-12-31 25:00",
                           "2024-12-31 12",
                           "abc",
                           "-",
                           "1e5",
                           "0000-00-00",
                           "2024-12-31 24:00:01",
                           "2024-12-31 13:00 PM",
                           "2024-12-31 0:30 AM",
                           "2024-12-31 12:00 XYZ",
                           "2024-12-31 12:00 +24:00",
                           "202412310",
                           "Mon 2024-12-31",
                           "2024-12-31 12:00 12:00",
                           "2024-366"}) {
    EXPECT_FALSE(parse_date(text, DateForm::kYmd)) << text;
  }
  for (const char* text :
       {"31/31/2024", "32.1.2024", "31.12.024", "31 Foo 2024", "31.12", "10.1.2.3", "12/31/2024",
        "Mon 31/12/2024", "1,2,2024", "3112202", "31 Dec 2024 12:00 +01:00 (", "Dec 31, 2024"}) {
    EXPECT_FALSE(parse_date(text, DateForm::kDmy)) << text;
  }
  for (const char* text : {"2023-366", "2024-000", "2024-36", "2024-367"})
    EXPECT_FALSE(parse_date(text, DateForm::kOrdinal)) << text;
  for (const char* text : {"2024-W53", "2024-W00-1", "2024-W01-8", "2024-W01-0", "2024-W1", "2024-1"})
    EXPECT_FALSE(parse_date(text, DateForm::kWeek)) << text;
  for (const char* text : {"Jan 21", "1/21", "13/2024", "21-Jan", "Jan 1 2021", "Foo-21"})
    EXPECT_FALSE(parse_date(text, DateForm::kMonthYear)) << text;
  for (const char* text : {"24:01", "12:60", "12", ":30", "12:3", "12:30:", "12:30:61"}) {
    EXPECT_FALSE(parse_date(text, DateForm::kTime)) << text;
  }
  for (const char* text : {"1e300", "x", "", "345600000001", "-345600000001"})
    EXPECT_FALSE(parse_date(text, DateForm::kEpoch)) << text;
}

TEST(Date, AreThoseOfPythonInAllForms) {
  for (const nlohmann::json& reference : test::torch_references("dates", "date_references.json")) {
    const auto text = reference[0].get<std::string>();
    const auto form =
        std::ranges::find(date_forms(), reference[1].get<std::string>(), &Named<DateForm>::name);
    ASSERT_NE(form, date_forms().end());
    const auto date = read_date(text, form->value);
    ASSERT_TRUE(date) << text;
    EXPECT_NEAR(date->days, reference[2].get<double>(), 1e-9) << text;
    const bool ends_compact =
        has_short_years(form->value) && std::ranges::all_of(text.substr(0, 6), is_digit);
    if (form->value >= DateForm::kEpoch || ends_compact || parse_number(text)) continue;
    // Found by how it begins, and of no other form, but for days that may be months.
    Index fits = 0;
    bool found = false;
    for (const DateForm each : possible_forms(text)) {
      fits += parse_date(text, each) ? 1 : 0;
      found = found || each == form->value;
    }
    EXPECT_TRUE(found) << text;
    const bool two = form->value == DateForm::kDmy || form->value == DateForm::kMdy;
    EXPECT_LE(fits, two ? 2 : 1) << text;
  }
}

TEST(Date, YearsOfTwoDigitsAreOfTheHundredBeforeAYear) {
  const auto year = [](const char* text, Index before) {
    return write_date(*parse_date(text, DateForm::kDmy, before)).substr(0, 4);
  };
  EXPECT_EQ(year("1.2.68", kShortYearsBefore), "2068");
  EXPECT_EQ(year("1.2.69", kShortYearsBefore), "1969");
  EXPECT_EQ(year("1.2.09", 2010), "2009");
  EXPECT_EQ(year("1.2.10", 2010), "1910");
  EXPECT_EQ(year("1.2.99", 2000), "1999");
  EXPECT_EQ(year("1.2.00", 2000), "1900");
  EXPECT_EQ(year("1.2.2011", 2010), "2011") << "of four digits";
  EXPECT_TRUE(read_date("1.2.68", DateForm::kDmy)->short_year);
  EXPECT_FALSE(read_date("1.2.1968", DateForm::kDmy)->short_year);
}

TEST(Date, IsWrittenWithItsTimeToTheMinute) {
  EXPECT_EQ(write_date(20088), "2024-12-31");
  EXPECT_EQ(write_date(20088.75), "2024-12-31 18:00");
  EXPECT_EQ(write_date(-0.25), "1969-12-31 18:00");
  EXPECT_EQ(write_date(0.75, DateForm::kTime), "18:00");
  EXPECT_EQ(write_date(1, DateForm::kTime), "24:00");
}

TEST(Date, CyclesCloseWhereTheyBegin) {
  const double new_year = *parse_date("2024-01-01", DateForm::kYmd);
  const auto expect_point = [](const std::array<double, 2>& point, double sine, double cosine) {
    EXPECT_NEAR(point[0], sine, 1e-9);
    EXPECT_NEAR(point[1], cosine, 1e-9);
  };
  expect_point(cycle_of(new_year, DatePart::kYear), 0, 1);
  expect_point(cycle_of(new_year + 183, DatePart::kYear), 0, -1);  // half of a leap year of 366 days
  expect_point(cycle_of(new_year, DatePart::kMonth), 0, 1);
  expect_point(cycle_of(*parse_date("2024-04-15", DateForm::kYmd), DatePart::kMonth), 1, 0);
  expect_point(cycle_of(new_year + 0.25, DatePart::kHour), 1, 0);
  expect_point(cycle_of(-0.25, DatePart::kHour), -1, 0);
  EXPECT_EQ(cycle_of(new_year, DatePart::kWeekday), cycle_of(new_year + 7, DatePart::kWeekday));
  expect_point(cycle_of(new_year - 1, DatePart::kWeekday), 0, 1);  // a Sunday
  expect_point(cycle_of(new_year + 366.0 / 4, DatePart::kYear), 1, 0);
  expect_point(cycle_of(new_year - 365.0 / 4, DatePart::kYear), -1, 0);
  EXPECT_NE(cycle_of(new_year, DatePart::kWeekday), cycle_of(new_year + 1, DatePart::kWeekday));
}

TEST(Date, ADayOfTheYearIsTheSameInAllYears) {
  const auto day = [](const char* text) { return day_of_year(*parse_date(text, DateForm::kYmd)); };
  EXPECT_EQ(day("2023-01-01"), 0);
  EXPECT_EQ(day("2023-02-28"), 58);
  EXPECT_EQ(day("2024-02-29"), 59);
  for (const char* march : {"2023-03-01", "2024-03-01", "1900-03-01", "2000-03-01"})
    EXPECT_EQ(day(march), 60);
  for (const char* last : {"2023-12-31T23:59", "2024-12-31", "1969-12-31T18:00"}) EXPECT_EQ(day(last), 365);
  EXPECT_EQ((DateReading{.parts = {DatePart::kDayOfYear, DatePart::kWeekday}}.width()), 368);
}

// The parts that a column has as data.columns declares it.
std::string declared(const std::string& term) {
  return declare_columns({.columns = {"t: " + term}}, {"t"}).front().date->term();
}

// Seconds since 1970 have a time of day, as a time has; a date has none unless it is asked for.
TEST(Date, WithoutPartsHasTheUsualOnesOfItsForm) {
  EXPECT_EQ(declared("date(epoch)"), "date(epoch, day, year, weekday, hour)");
  EXPECT_EQ(declared("date(time)"), "date(time, hour)");
  for (const std::string form : {"ymd", "dmy", "mdy"}) {
    EXPECT_EQ(declared("date(" + form + ")"), "date(" + form + ", day, year, weekday)");
  }
  EXPECT_EQ(declared("date(epoch_ms)"), "date(epoch_ms, day, year, weekday, hour)");
  EXPECT_EQ(declared("date(excel)"), "date(excel, day, year, weekday)");
  EXPECT_EQ(declared("date(my)"), "date(my, day, year)");
  EXPECT_EQ(declared("date(dmy, day, before = 2010)"), "date(dmy, day, before=2010)");
  EXPECT_EQ(declared("date(epoch, month)"), "date(epoch, month)");
  EXPECT_EQ(declared("date(ymd, hour, day)"), "date(ymd, hour, day)");
  const auto usual = [](DateForm form, bool has_times) {
    return DateReading{.form = form, .parts = usual_parts(form, has_times)}.term();
  };
  EXPECT_EQ(usual(DateForm::kYmd, true), "date(ymd, day, year, weekday, hour)");
  EXPECT_EQ(usual(DateForm::kEpoch, false), "date(epoch, day, year, weekday)");
}

TEST(Date, ATermSaysFormAndParts) {
  const DateReading date{.form = DateForm::kDmy, .parts = {DatePart::kDay, DatePart::kHour}};
  EXPECT_EQ(date.term(), "date(dmy, day, hour)");
  EXPECT_EQ(date.width(), 3);
}

}  // namespace
}  // namespace lockstep::date_test
