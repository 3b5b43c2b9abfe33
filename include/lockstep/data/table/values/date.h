// Dates and times of day in a column, and the features that they become.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

enum class DateForm {
  kYmd,    ///< 2024-12-31, with or without a time of day behind it, as ISO 8601 has it
  kDmy,    ///< 31.12.2024, 31/12/24, 31 Dec 2024
  kMdy,    ///< 12/31/2024, Dec 31, 2024
  kTime,   ///< 23:59, 23:59:30
  kEpoch,  ///< seconds since 1970-01-01 00:00 UTC
};

enum class DatePart {
  kDay,        ///< the number of the day, scaled as a number: one feature
  kDayOfYear,  ///< the day in the year: a feature for each of them, so that holidays can be learned
  kYear,       ///< the position in the year: this and the next ones are two features, sine and cosine
  kMonth,      ///< the month, one of twelve
  kWeekday,    ///< the day of the week
  kHour,       ///< the time of day
};

/// How a column of dates is read, and what is made of it.
struct DateReading {
  DateForm form = DateForm::kYmd;
  std::vector<DatePart> parts = {};

  bool operator==(const DateReading&) const = default;
  /// Features of a date.
  Index width() const;
  /// "date(dmy, day, weekday)", as data.columns takes it.
  std::string term() const;
};

/// The parts that are taken where none are named: the day, its place in the year and in the week; the hour,
/// if there are times of day.
std::vector<DatePart> usual_parts(DateForm form, bool has_times);

struct NamedDateForm {
  DateForm value;
  const char* name;  ///< "dmy"
};
std::span<const NamedDateForm> date_forms();
struct NamedDatePart {
  DatePart value;
  const char* name;  ///< "weekday"
};
std::span<const NamedDatePart> date_parts();

/// Days since 1970-01-01, with the time of day as a fraction; nothing if `text` is no date of that form. A
/// time zone behind the time is taken into account. Years of two digits are those of 1969 to 2068 (POSIX).
std::optional<double> parse_date(std::string_view text, DateForm form);

inline constexpr Index kDaysOfYear = 366;

/// The day in a leap year, from 0 on: the same for a month and day of any year. `days` as parse_date() gives
/// it.
Index day_of_year(double days);

/// Sine and cosine of kYear and the parts after it, of a number of days as parse_date() gives it.
std::array<double, 2> cycle_of(double days, DatePart part);

}  // namespace lockstep
