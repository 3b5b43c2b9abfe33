#include "time_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <utility>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr Index kMicrosecondsOfDay = 86'400'000'000;
constexpr double kDayInSeconds = 86'400;
constexpr Index kPlacesOfMicroseconds = 6;
constexpr std::array kMonths{"January", "February", "March",     "April",   "May",      "June",
                             "July",    "August",   "September", "October", "November", "December"};
constexpr std::array kWeekdays{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

bool is_upper(char c) {
  return std::isupper(static_cast<unsigned char>(c)) != 0;
}

// In the letters of `model`: "JAN", "Jan", "jan".
std::string with_case_of(std::string_view model, std::string text) {
  if (model.size() > 1 && std::ranges::all_of(model.substr(0, 2), is_upper))
    std::ranges::transform(text, text.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  if (!is_upper(model.front()))
    std::ranges::transform(text, text.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

const char* ending_of(unsigned day) {
  if (day / 10 == 1 || day % 10 > 3) return "th";
  return std::array{"th", "st", "nd", "rd"}[day % 10];
}

// The year and week of a day as ISO 8601 counts them: those of its Thursday.
std::pair<int, Index> week_of(sys_days date) {
  const unsigned weekday = std::chrono::weekday{date}.iso_encoding();
  const sys_days thursday = date + std::chrono::days{4 - static_cast<int>(weekday)};
  const std::chrono::year year = year_month_day{thursday}.year();
  return {static_cast<int>(year), (thursday - sys_days{year / std::chrono::January / 1}).count() / 7 + 1};
}

// A point in time, field by field.
struct Moment {
  sys_days date;
  Index microseconds;  // of the day
  bool of_weeks;       // years are those of weeks
  bool has_half;

  Index number(const DateField& field) const {
    const year_month_day day{date};
    const Index seconds = microseconds / 1'000'000;
    const Index hour = seconds / 3600;
    switch (field.kind) {
      case DateField::kYear: {
        const int year = of_weeks ? week_of(date).first : static_cast<int>(day.year());
        return field.end - field.begin == 2 ? year % 100 : year;
      }
      case DateField::kMonth:
        return static_cast<unsigned>(day.month());
      case DateField::kDay:
        return static_cast<unsigned>(day.day());
      case DateField::kDayOfYear:
        return (date - sys_days{day.year() / std::chrono::January / 1}).count() + 1;
      case DateField::kWeek:
        return week_of(date).second;
      case DateField::kDayOfWeek:
        return std::chrono::weekday{date}.iso_encoding();
      case DateField::kHour:
        return has_half ? (hour + 11) % 12 + 1 : hour;
      case DateField::kMinute:
        return seconds / 60 % 60;
      default:
        return seconds % 60;
    }
  }

  std::string text(const DateField& field, std::string_view model, bool zeros, bool long_names) const {
    const year_month_day day{date};
    const auto name = [&](const std::string& whole) {
      return with_case_of(model, long_names ? whole : whole.substr(0, 3));
    };
    switch (field.kind) {
      case DateField::kMonthName:
        return name(kMonths[static_cast<unsigned>(day.month()) - 1]);
      case DateField::kWeekday:
        return name(kWeekdays[std::chrono::weekday{date}.c_encoding()]);
      case DateField::kEnding:
        return ending_of(static_cast<unsigned>(day.day()));
      case DateField::kHalf: {
        std::string half(model);
        const bool upper = is_upper(half.front());
        half.front() = microseconds < kMicrosecondsOfDay / 2 ? (upper ? 'A' : 'a') : (upper ? 'P' : 'p');
        return half;
      }
      case DateField::kFraction: {
        std::string digits = fmt::format("{:06}", microseconds % 1'000'000);
        digits.resize(model.size(), '0');
        return digits;
      }
      default:
        return fmt::format("{:0{}}", number(field), zeros || model.size() > 2 ? model.size() : 1);
    }
  }
};

bool may_lack_zeros(DateField::Kind kind) {
  return kind == DateField::kMonth || kind == DateField::kDay || kind == DateField::kHour;
}

}  // namespace

void TimeLayout::add(std::string_view text) {
  if (!form_ || *form_ >= DateForm::kEpoch) {
    text_ = text;
    return;
  }
  std::vector<DateField> fields;
  const std::optional<DateText> date = read_date(text, *form_, before_, &fields);
  if (!date) return;
  for (const DateField& field : fields) {
    const std::size_t length = field.end - field.begin;
    if (may_lack_zeros(field.kind) && length == 1) has_zeros_ = false;
    const auto is_it = [name = text.substr(field.begin, length)](std::string_view whole) {
      return whole.size() > 3 && std::ranges::equal(name, whole, {}, lower_case, lower_case);
    };
    const bool is_long = std::ranges::any_of(kMonths, is_it) || std::ranges::any_of(kWeekdays, is_it);
    has_long_names_ = has_long_names_ || is_long;
  }
  if (has_time_ && !date->has_time) return;
  has_time_ = date->has_time;
  zone_ = date->zone;
  if (zone_) *zone_ /= kDayInSeconds;
  text_ = text;
  fields_ = std::move(fields);
}

bool TimeLayout::may_repeat_an_hour(double time) const {
  constexpr double kFourHours = 4.0 / 24;
  if (!has_time_ || zone_ || *form_ == DateForm::kTime) return false;
  const double day = std::floor(time);
  const sys_days date{std::chrono::days{static_cast<int>(day)}};
  return time > day && time - day < kFourHours && std::chrono::weekday{date} == std::chrono::Sunday;
}

std::string TimeLayout::write(double time) const {
  if (!form_) return write_number(time);
  if (*form_ >= DateForm::kEpoch)
    return write_number((time - (*form_ == DateForm::kExcel ? kFirstOfExcel : 0)) * per_day(*form_));
  const auto places_of = [&](DateField::Kind kind) -> Index {
    const auto field = std::ranges::find(fields_, kind, &DateField::kind);
    return field == fields_.end() ? -1 : static_cast<Index>(field->end - field->begin);
  };
  // Rounded to the last place that is written.
  Index unit = 1;
  if (places_of(DateField::kFraction) < 0) {
    unit = places_of(DateField::kSecond) > 0   ? 1'000'000
           : places_of(DateField::kMinute) > 0 ? 60'000'000
           : places_of(DateField::kHour) > 0   ? 3'600'000'000
                                               : 1;
  } else {
    for (Index place = places_of(DateField::kFraction); place < kPlacesOfMicroseconds; ++place) unit *= 10;
  }
  const double units = time * static_cast<double>(kMicrosecondsOfDay) / static_cast<double>(unit);
  const Index since_1970 = std::llround(units) * unit;
  const Index microseconds = (since_1970 % kMicrosecondsOfDay + kMicrosecondsOfDay) % kMicrosecondsOfDay;
  const Index days = (since_1970 - microseconds) / kMicrosecondsOfDay;
  const Moment moment{.date = sys_days{std::chrono::days{days}},
                      .microseconds = microseconds,
                      .of_weeks = *form_ == DateForm::kWeek,
                      .has_half = places_of(DateField::kHalf) > 0};
  std::string written;
  std::size_t copied = 0;
  for (const DateField& field : fields_) {
    written.append(text_, copied, field.begin - copied);
    written += moment.text(field, std::string_view(text_).substr(field.begin, field.end - field.begin),
                           has_zeros_, has_long_names_);
    copied = field.end;
  }
  return written.append(text_, copied);
}

// With as many places as the text has.
std::string TimeLayout::write_number(double number) const {
  const std::size_t sign = text_.find_last_of(".,");
  const std::size_t places = sign == std::string::npos ? 0 : text_.size() - sign - 1;
  std::string text = fmt::format("{:.{}f}", number, places);
  if (places > 0) text[text.size() - places - 1] = text_[sign];
  return text;
}

}  // namespace lockstep
