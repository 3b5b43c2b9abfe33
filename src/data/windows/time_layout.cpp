#include "time_layout.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr double kDayInSeconds = 86'400;
constexpr Index kSecond = 1'000'000;  // microseconds
constexpr Index kDay = 86'400 * kSecond;
constexpr Index kPlacesOfMicroseconds = 6;

// As strftime writes a field that stands in the text as `model`; "" where it does not know it.
std::string form_of(DateField::Kind kind, std::string_view model, bool of_weeks, bool has_half,
                    bool long_names) {
  switch (kind) {
    case DateField::kYear:
      return model.size() == 2 ? "%y" : of_weeks ? "%G" : "%Y";
    case DateField::kMonth:
      return "%m";
    case DateField::kMonthName:
      return long_names ? "%B" : "%b";
    case DateField::kDay:
      return "%d";
    case DateField::kDayOfYear:
      return "%j";
    case DateField::kWeek:
      return "%V";
    case DateField::kDayOfWeek:
      return "%u";
    case DateField::kWeekday:
      return long_names ? "%A" : "%a";
    case DateField::kHour:
      return has_half ? "%I" : "%H";
    case DateField::kMinute:
      return "%M";
    case DateField::kSecond:
      return "%S";
    case DateField::kHalf:
      return "%p";
    default:
      return "";
  }
}

const char* ending_of(int day) {
  if (day / 10 == 1 || day % 10 > 3) return "th";
  return std::array{"th", "st", "nd", "rd"}[static_cast<std::size_t>(day % 10)];
}

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
    const bool is_name = field.kind == DateField::kMonthName || field.kind == DateField::kWeekday;
    has_long_names_ = has_long_names_ || (is_name && length > 3);
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
  constexpr Index kFirstSunday = 3;  // 1970-01-04
  return time > day && time - day < kFourHours && (static_cast<Index>(day) - kFirstSunday) % 7 == 0;
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
  const Index since_1970 = std::llround(time * static_cast<double>(kDay) / static_cast<double>(unit)) * unit;
  const Index of_second = (since_1970 % kSecond + kSecond) % kSecond;
  const std::tm moment = fmt::gmtime(static_cast<std::time_t>((since_1970 - of_second) / kSecond));
  std::string written;
  std::size_t copied = 0;
  for (const DateField& field : fields_) {
    const std::string_view model = std::string_view(text_).substr(field.begin, field.end - field.begin);
    const std::string form = form_of(field.kind, model, *form_ == DateForm::kWeek,
                                     places_of(DateField::kHalf) > 0, has_long_names_);
    std::string text = form.empty() ? "" : fmt::format(fmt::runtime("{:" + form + "}"), moment);
    if (field.kind == DateField::kEnding) text = ending_of(moment.tm_mday);
    if (field.kind == DateField::kFraction) {
      text = fmt::format("{:06}", of_second);
      text.resize(model.size(), '0');
    }
    if (!has_zeros_ && may_lack_zeros(field.kind) && text.front() == '0') text.erase(0, 1);
    written.append(text_, copied, field.begin - copied);
    written += in_case_of(model, text);
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
