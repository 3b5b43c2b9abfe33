// A date is three fields, of which the month may be a name, with one of - / . or a blank between them; a time
// of day may follow. What remains of the text makes it no date.
#include "lockstep/data/table/values/notation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

using std::chrono::day;
using std::chrono::month;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

constexpr Named<DateForm> kDateForms[]{{DateForm::kYmd, "ymd"},
                                       {DateForm::kDmy, "dmy"},
                                       {DateForm::kMdy, "mdy"},
                                       {DateForm::kTime, "time"},
                                       {DateForm::kEpoch, "epoch"}};
constexpr Named<DatePart> kParts[]{{DatePart::kDay, "day"},         {DatePart::kDayOfYear, "day_of_year"},
                                   {DatePart::kYear, "year"},       {DatePart::kMonth, "month"},
                                   {DatePart::kWeekday, "weekday"}, {DatePart::kHour, "hour"}};
constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
constexpr double kSecondsPerDay = 86400;

// Its letters are the order of the fields of a date.
const char* form_name(DateForm form) {
  return std::ranges::find(kDateForms, form, &Named<DateForm>::value)->name;
}

// Goes through a text; the first thing that is missing makes all of it fail.
class DateParser {
 public:
  explicit DateParser(std::string_view text) : rest_(text) {}

  std::optional<double> date(DateForm form) {
    unsigned months = 0;
    int years = 0;
    unsigned days = 0;
    bool first = true;
    for (const char field : std::string_view(form_name(form))) {
      if (!std::exchange(first, false)) between();
      if (field == 'y') {
        years = form == DateForm::kYmd ? number(4, 4) : full_year();
      } else if (field == 'm') {
        months = month_number();
      } else {
        days = static_cast<unsigned>(number(1, 2));
        if (form == DateForm::kMdy) accept(',');
      }
    }
    const year_month_day date{year{years}, month{months}, day{days}};
    if (failed_ || !date.ok()) return std::nullopt;
    double result = static_cast<double>(sys_days{date}.time_since_epoch().count());
    if (rest_.empty()) return result;
    if (!accept('T')) {
      accept(',');
      if (!accept(' ')) return std::nullopt;
    }
    const auto time = time_of_day();
    if (!time) return std::nullopt;
    result += *time;
    return result;
  }

  // As a fraction of a day; less its time zone, if there is one.
  std::optional<double> time_of_day() {
    const int hours = number(1, 2);
    failed_ |= !accept(':');
    const int minutes = number(2, 2);
    double seconds = 0;
    if (accept(':')) {
      seconds = number(2, 2);
      if (accept('.')) seconds += fraction();
    }
    failed_ |= hours > 23 || minutes > 59 || seconds >= 61;
    const double zone = zone_seconds();
    if (failed_ || !rest_.empty()) return std::nullopt;
    return (hours * 3600.0 + minutes * 60.0 + seconds - zone) / kSecondsPerDay;
  }

 private:
  bool accept(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  int number(std::size_t least, std::size_t most) {
    int value = 0;
    digits_ = 0;
    while (digits_ < most && !rest_.empty() && is_digit(rest_.front())) {
      value = 10 * value + (rest_.front() - '0');
      rest_.remove_prefix(1);
      ++digits_;
    }
    failed_ |= digits_ < least;
    return value;
  }

  double fraction() {
    double value = 0;
    double scale = 1;
    while (!rest_.empty() && is_digit(rest_.front())) {
      scale /= 10;
      value += scale * (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }

  int full_year() {
    const int value = number(2, 4);
    failed_ |= digits_ == 3;
    if (digits_ != 2) return value;
    return value < 69 ? 2000 + value : 1900 + value;
  }

  // By its number, or by the first three letters of its English name.
  unsigned month_number() {
    if (rest_.empty() || is_digit(rest_.front())) return static_cast<unsigned>(number(1, 2));
    std::string name;
    while (!rest_.empty() && std::isalpha(static_cast<unsigned char>(rest_.front())) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(rest_.front())));
      rest_.remove_prefix(1);
    }
    accept('.');
    const std::size_t found = name.size() < 3 ? std::string_view::npos : kMonths.find(name.substr(0, 3));
    failed_ |= found == std::string_view::npos || found % 3 != 0;
    return failed_ ? 0 : static_cast<unsigned>(found / 3 + 1);
  }

  // Takes the sign between two fields; there may be none beside the name of a month.
  void between() {
    const char sign = rest_.empty() ? '\0' : rest_.front();
    const bool known = sign == '-' || sign == '/' || sign == '.' || sign == ' ';
    const bool letter = std::isalpha(static_cast<unsigned char>(sign)) != 0;
    if (known) rest_.remove_prefix(1);
    failed_ |= rest_.empty() || (!known && !letter && !named_month_);
    named_month_ = letter;
  }

  double zone_seconds() {
    if (accept('Z')) return 0;
    accept(' ');
    const bool east = rest_.starts_with('+');
    if (!east && !rest_.starts_with('-')) return 0;
    rest_.remove_prefix(1);
    const int hours = number(2, 2);
    accept(':');
    const int minutes = rest_.empty() ? 0 : number(2, 2);
    return (east ? 1 : -1) * (hours * 3600.0 + minutes * 60.0);
  }

  std::string_view rest_;
  std::size_t digits_ = 0;  // digits of the last number
  bool named_month_ = false;
  bool failed_ = false;
};

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

std::span<const Named<DateForm>> date_forms() {
  return kDateForms;
}

std::span<const Named<DatePart>> date_parts() {
  return kParts;
}

std::vector<DatePart> usual_parts(DateForm form, bool has_times) {
  std::vector<DatePart> parts;
  if (form != DateForm::kTime) parts = {DatePart::kDay, DatePart::kYear, DatePart::kWeekday};
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
  std::vector<const char*> words{form_name(form)};
  for (const DatePart part : parts)
    words.push_back(std::ranges::find(kParts, part, &Named<DatePart>::value)->name);
  return fmt::format("date({})", fmt::join(words, ", "));
}

std::optional<double> parse_date(std::string_view text, DateForm form) {
  if (form == DateForm::kTime) return DateParser(text).time_of_day();
  if (form != DateForm::kEpoch) return DateParser(text).date(form);
  constexpr double kLastDay = 4e6;  // a day in some ten thousand years: the calendar can take it
  const auto seconds = parse_number(text);
  if (!seconds || std::abs(*seconds) > kLastDay * kSecondsPerDay) return std::nullopt;
  return *seconds / kSecondsPerDay;
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
