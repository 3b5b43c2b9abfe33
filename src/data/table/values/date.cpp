// Forms and parts of dates by their names, and days as dates of the calendar; date_text.cpp reads them from
// texts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "lockstep/data/table/values/notation.h"

namespace lockstep {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

sys_days date_of(double days) {
  return sys_days{std::chrono::days{static_cast<int>(std::floor(days))}};
}

double cycle_share(double days, DatePart part) {
  const double whole = std::floor(days);
  if (part == DatePart::kHour) return days - whole;
  const sys_days date = date_of(days);
  if (part == DatePart::kWeekday) return std::chrono::weekday{date}.c_encoding() / 7.0;
  const year_month_day parts{date};
  if (part == DatePart::kMonth) return (static_cast<unsigned>(parts.month()) - 1) / 12.0;
  const sys_days first{parts.year() / std::chrono::January / 1};
  const sys_days next{(parts.year() + std::chrono::years{1}) / std::chrono::January / 1};
  const double passed = static_cast<double>((date - first).count()) + days - whole;
  return passed / static_cast<double>((next - first).count());
}

}  // namespace

const char* to_string(DateForm form) {
  return word_of(kDateForms, form);
}

bool counts_seconds(DateForm form) {
  return form == DateForm::kTime || (form >= DateForm::kEpoch && form != DateForm::kExcel);
}

bool has_short_years(DateForm form) {
  return form == DateForm::kDmy || form == DateForm::kMdy || form == DateForm::kMonthYear;
}

std::vector<DatePart> usual_parts(DateForm form, bool has_times) {
  std::vector<DatePart> parts;
  const bool of_months = form == DateForm::kYearMonth || form == DateForm::kMonthYear;
  if (form != DateForm::kTime) parts = {DatePart::kDay, DatePart::kYear, DatePart::kWeekday};
  if (of_months) parts.pop_back();
  if (has_times) parts.push_back(DatePart::kHour);
  return parts;
}

Index DateReading::width() const {
  Index width = 0;
  for (const DatePart part : parts)
    width += part == DatePart::kDay ? 1 : part == DatePart::kDayOfYear ? kDaysOfYear : 2;
  return width;
}

std::string DateReading::term() const {
  std::vector<std::string> words{to_string(form)};
  for (const DatePart part : parts) words.emplace_back(word_of(kDateParts, part));
  if (before) words.push_back(fmt::format("before={}", *before));
  return fmt::format("date({})", fmt::join(words, ", "));
}

std::string write_date(double days, DateForm form) {
  constexpr Index kSecond = 1000;
  constexpr Index kMinute = 60 * kSecond;
  constexpr Index kDay = 24 * 60 * kMinute;
  double whole = std::floor(days);
  Index milliseconds = std::llround((days - whole) * double{kDay});
  whole += static_cast<double>(milliseconds / kDay);
  milliseconds %= kDay;
  std::string clock = fmt::format("{:02}:{:02}", milliseconds / kMinute / 60, milliseconds / kMinute % 60);
  if (milliseconds % kMinute != 0) clock += fmt::format(":{:02}", milliseconds % kMinute / kSecond);
  if (milliseconds % kSecond != 0) clock += fmt::format(".{:03}", milliseconds % kSecond);
  if (form == DateForm::kTime) return whole < 1 ? clock : "24:00";
  const year_month_day date{date_of(whole)};
  return fmt::format("{:04}-{:02}-{:02}{}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     milliseconds == 0 ? "" : " " + clock);
}

double today() {
  return static_cast<double>(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()).time_since_epoch().count());
}

Index day_of_year(double days) {
  constexpr std::chrono::year kLeapYear{2000};
  const year_month_day date{date_of(days)};
  return (sys_days{kLeapYear / date.month() / date.day()} - sys_days{kLeapYear / std::chrono::January / 1})
      .count();
}

std::array<double, 2> cycle_of(double days, DatePart part) {
  const double angle = 2 * std::numbers::pi * cycle_share(days, part);
  return {std::sin(angle), std::cos(angle)};
}

}  // namespace lockstep
