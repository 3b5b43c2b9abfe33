// A date is some fields in an order that its form names, with one of - / . , or blanks between them; the
// month may be a name. A day of the week may stand before it, and a time of day behind it or before the year.
// What remains of the text makes it no date.
#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/data/table/values/notation.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

using std::chrono::day;
using std::chrono::month;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
constexpr std::string_view kWeekdays = "sunmontuewedthufrisat";
constexpr double kSecondsPerDay = 86400;

// The fields of each form in a text, in their order: y, m and d; w, a week with its day; j, the day of the
// year. A compact date has no signs between them, and so many digits.
struct TextForm {
  std::string_view fields;
  std::size_t compact;
};
constexpr std::array<TextForm, kTextDateForms> kTextForms{
    {{"ymd", 8}, {"dmy", 8}, {"mdy", 8}, {"", 0}, {"yw", 0}, {"yj", 7}, {"ym", 6}, {"my", 6}}};

// How much a day is in the forms from kEpoch on.
constexpr std::array kPerDay{kSecondsPerDay, kSecondsPerDay * 1e3, kSecondsPerDay * 1e6, kSecondsPerDay * 1e9,
                             1.0};

// The zones that RFC 2822 names, and those of Europe, in hours east of Greenwich.
constexpr std::pair<std::string_view, int> kZones[]{
    {"Z", 0},    {"UTC", 0},  {"GMT", 0},  {"UT", 0},   {"EST", -5}, {"EDT", -4},
    {"CST", -6}, {"CDT", -5}, {"MST", -7}, {"MDT", -6}, {"PST", -8}, {"PDT", -7},
    {"WET", 0},  {"WEST", 1}, {"CET", 1},  {"CEST", 2}, {"EET", 2},  {"EEST", 3}};

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// How many characters of a kind the text begins with.
std::size_t count_first(std::string_view text, bool (*is_of)(char)) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_of) - text.begin());
}

// The position of a word in a list of the first three letters of names.
std::optional<unsigned> find_name(std::string_view names, std::string_view word) {
  if (word.size() < 3) return std::nullopt;
  const char start[]{lower_case(word[0]), lower_case(word[1]), lower_case(word[2])};
  const std::size_t found = names.find(std::string_view(start, 3));
  if (found == std::string_view::npos || found % 3 != 0) return std::nullopt;
  return static_cast<unsigned>(found / 3);
}

// Goes through a text; the first thing that is missing makes all of it fail.
class DateParser {
 public:
  // `fields`: where the fields of the text are noted, if anywhere.
  DateParser(std::string_view text, Index before, std::vector<DateField>* fields)
      : text_(text), rest_(text), before_(before), fields_(fields) {}

  std::optional<DateText> date(const TextForm& form) {
    const std::optional<unsigned> weekday = take_weekday();
    const std::size_t digits = count_first(rest_, is_digit);
    const bool with_time = digits >= form.compact + 2 && digits <= form.compact + 6 && digits % 2 == 0;
    compact_ = form.compact > 0 && (digits == form.compact || (with_time && form.fields.size() == 3));
    for (const char& field : form.fields) {
      if (&field != form.fields.data()) between();
      take_field(field, form);
      if (failed_) return std::nullopt;
    }
    const std::optional<sys_days> date = calendar_day(form.fields.back());
    if (!date || (weekday && std::chrono::weekday{*date}.c_encoding() != *weekday)) return std::nullopt;
    if (compact_ && rest_ == ".0") rest_ = {};  // a column with gaps, written as floating-point numbers
    if (!rest_.empty()) take_time_behind();
    if (failed_ || !rest_.empty()) return std::nullopt;
    double days = static_cast<double>(date->time_since_epoch().count());
    if (has_time_) days += seconds_ / kSecondsPerDay;
    return DateText{.days = days, .has_time = has_time_, .short_year = short_year_, .zone = zone_};
  }

  // As a fraction of a day; less its time zone, if there is one.
  std::optional<DateText> time_of_day() {
    take_clock();
    if (failed_ || !rest_.empty()) return std::nullopt;
    return DateText{.days = seconds_ / kSecondsPerDay, .has_time = true, .zone = zone_};
  }

 private:
  std::size_t here() const { return text_.size() - rest_.size(); }
  void note(DateField::Kind kind, std::size_t begin) {
    if (fields_ != nullptr && here() > begin) fields_->push_back({kind, begin, here()});
  }

  bool accept(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Some programs write AM and PM behind a narrow no-break space (U+202F).
  bool skip_blanks() {
    constexpr std::string_view kNarrow = "\xe2\x80\xaf";
    const std::size_t before = rest_.size();
    while (accept(' ')) {
    }
    if (rest_.starts_with(kNarrow)) rest_.remove_prefix(kNarrow.size());
    return rest_.size() < before;
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

  std::optional<unsigned> take_weekday() {
    const std::size_t letters = count_first(rest_, is_letter);
    const auto found = find_name(kWeekdays, rest_.substr(0, letters));
    if (!found) return std::nullopt;
    rest_.remove_prefix(letters);
    note(DateField::kWeekday, 0);
    accept('.');
    accept(',');
    skip_blanks();
    return found;
  }

  void take_field(char field, const TextForm& form) {
    after_name_ = false;
    if (field == 'y') {
      const bool clock =
          form.fields.front() != 'y' && rest_.substr(count_first(rest_, is_digit)).starts_with(':');
      if (clock) {
        take_clock();
        skip_blanks();
      }
      const std::size_t begin = here();
      take_year(form);
      note(DateField::kYear, begin);
      return;
    }
    const std::size_t begin = here();
    if (field == 'm') {
      take_month();
      note(after_name_ ? DateField::kMonthName : DateField::kMonth, begin);
      if (after_name_) accept('.');
    } else if (field == 'd') {
      days_ = number(1, 2);
      note(DateField::kDay, begin);
      const std::size_t ending_begin = here();
      const std::string_view ending = rest_.substr(0, 2);
      if (ending == "st" || ending == "nd" || ending == "rd" || ending == "th") rest_.remove_prefix(2);
      note(DateField::kEnding, ending_begin);
    } else if (field == 'j') {
      days_ = number(3, 3);
      note(DateField::kDayOfYear, begin);
    } else {
      failed_ |= !accept('W');
      weeks_ = number(2, 2);
      note(DateField::kWeek, begin + 1);
      if (!accept('-') && count_first(rest_, is_digit) != 1) return;
      days_ = number(1, 1);
      note(DateField::kDayOfWeek, here() - 1);
    }
  }

  void take_year(const TextForm& form) {
    // "Jan 21" may be a day of this year; "1/21" may be anything.
    const bool may_be_short =
        form.fields.back() == 'y' && (form.fields.size() == 3 || (named_month_ && sign_ != ' '));
    years_ = number(may_be_short ? 2 : 4, 4);
    failed_ |= digits_ == 3;
    if (digits_ != 2) return;
    constexpr Index kCentury = 100;
    short_year_ = true;
    const Index latest = before_ / kCentury * kCentury + years_;
    years_ = static_cast<int>(latest < before_ ? latest : latest - kCentury);
  }

  // By its number, or by the first three letters of its English name.
  void take_month() {
    const std::size_t letters = count_first(rest_, is_letter);
    if (letters == 0) {
      months_ = static_cast<unsigned>(number(1, 2));
      return;
    }
    const auto found = find_name(kMonths, rest_.substr(0, letters));
    failed_ |= !found;
    months_ = found.value_or(0) + 1;
    named_month_ = after_name_ = true;
    rest_.remove_prefix(letters);
  }

  // Takes the sign between two fields; there may be none beside the name of a month and before a week.
  void between() {
    if (compact_) return;
    sign_ = rest_.empty() ? '\0' : rest_.front();
    const bool beside_name = after_name_ || is_letter(sign_);
    const bool known =
        sign_ == '-' || sign_ == '/' || sign_ == '.' || sign_ == ' ' || (sign_ == ',' && named_month_);
    if (known) rest_.remove_prefix(1);
    failed_ |= rest_.empty() || (!known && !beside_name);
    skip_blanks();
  }

  std::optional<sys_days> calendar_day(char last_field) const {
    using std::chrono::January;
    if (last_field == 'j') {
      const sys_days date = sys_days{year{years_} / January / 1} + std::chrono::days{days_ - 1};
      return year_month_day{date}.year() == year{years_} ? std::optional(date) : std::nullopt;
    }
    if (last_field == 'w') {
      // The fourth of January is in the first week, and the Thursday of a week in its year.
      const sys_days fourth{year{years_} / January / 4};
      const sys_days monday =
          fourth - (std::chrono::weekday{fourth} - std::chrono::Monday) + std::chrono::weeks{weeks_ - 1};
      const bool known = year_month_day{monday + std::chrono::days{3}}.year() == year{years_};
      if (!known || weeks_ < 1 || days_ < 1 || days_ > 7) return std::nullopt;
      return monday + std::chrono::days{days_ - 1};
    }
    const year_month_day date{year{years_}, month{months_}, day{static_cast<unsigned>(days_)}};
    return date.ok() ? std::optional(sys_days{date}) : std::nullopt;
  }

  void take_time_behind() {
    if (has_time_) {
      failed_ = true;
    } else if (!accept('T') && !(compact_ && is_digit(rest_.front()))) {
      accept(',');
      failed_ |= !skip_blanks();
    }
    take_clock();
  }

  void take_clock() {
    const bool plain = compact_ && !rest_.substr(count_first(rest_, is_digit)).starts_with(':');
    int hours = noted_number(DateField::kHour, 1);
    const bool hours_alone = plain && rest_.empty();
    failed_ |= !plain && !accept(':');
    const int minutes = hours_alone ? 0 : noted_number(DateField::kMinute, 2);
    double seconds = 0;
    if (plain ? count_first(rest_, is_digit) > 0 : accept(':')) {
      seconds = noted_number(DateField::kSecond, 2);
      const std::size_t begin = here() + 1;
      if (accept('.') || accept(',')) seconds += fraction();
      if (here() > begin) note(DateField::kFraction, begin);
    }
    if (const char half = take_half()) {
      failed_ |= hours < 1 || hours > 12;
      hours = hours % 12 + (half == 'p' ? 12 : 0);
    }
    const bool ends_day = hours == 24 && minutes == 0 && seconds == 0;
    failed_ |= (hours > 23 && !ends_day) || minutes > 59 || seconds >= 61;
    zone_ = zone_seconds();
    seconds_ = hours * 3600.0 + minutes * 60.0 + seconds - zone_.value_or(0);
    has_time_ = true;
  }

  int noted_number(DateField::Kind kind, std::size_t least) {
    const std::size_t begin = here();
    const int value = number(least, 2);
    note(kind, begin);
    return value;
  }

  // AM, "p.m.": its first letter; 0 for neither.
  char take_half() {
    const std::string_view before = rest_;
    skip_blanks();
    for (const std::string_view word : {"am", "pm", "a.m.", "p.m."}) {
      if (!std::ranges::equal(rest_.substr(0, word.size()), word, {}, lower_case)) continue;
      const std::size_t begin = here();
      rest_.remove_prefix(word.size());
      note(DateField::kHalf, begin);
      return word.front();
    }
    rest_ = before;
    return 0;
  }

  // "Z", "UTC", "+01:00", "GMT+0100 (CET)", "+01:00[Europe/Berlin]".
  std::optional<double> zone_seconds() {
    const std::string_view before = rest_;
    skip_blanks();
    const std::size_t letters = count_first(rest_, is_letter);
    const auto* const named =
        std::ranges::find(kZones, rest_.substr(0, letters), &std::pair<std::string_view, int>::first);
    const bool has_name = named != std::end(kZones);
    if (has_name) rest_.remove_prefix(letters);
    const bool east = rest_.starts_with('+');
    if (!east && !rest_.starts_with('-')) {
      if (!has_name) rest_ = before;
      return has_name ? std::optional(named->second * 3600.0) : std::nullopt;
    }
    rest_.remove_prefix(1);
    const int hours = number(2, 2);
    const int minutes = accept(':') || count_first(rest_, is_digit) > 0 ? number(2, 2) : 0;
    failed_ |= hours > 23 || minutes > 59;
    const std::size_t remark = rest_.find_first_not_of(' ');
    const bool closed = rest_.ends_with(')') || rest_.ends_with(']');
    if (closed && (rest_[remark] == '(' || rest_[remark] == '[')) rest_ = {};
    return (east ? 1 : -1) * (hours * 3600.0 + minutes * 60.0);
  }

  std::string_view text_;
  std::string_view rest_;
  Index before_;
  std::vector<DateField>* fields_;
  std::optional<double> zone_ = {};
  std::size_t digits_ = 0;  // digits of the last number
  char sign_ = '\0';        // the last sign between two fields
  int years_ = 0;
  unsigned months_ = 1;
  int weeks_ = 0;
  int days_ = 1;
  double seconds_ = 0;
  bool has_time_ = false;
  bool compact_ = false;
  bool named_month_ = false;
  bool after_name_ = false;  // of the month
  bool short_year_ = false;
  bool failed_ = false;
};

}  // namespace

double per_day(DateForm form) {
  return form < DateForm::kEpoch ? 1 : kPerDay[static_cast<std::size_t>(form) - kTextDateForms];
}

std::optional<DateText> read_date(std::string_view text, DateForm form, Index before,
                                  std::vector<DateField>* fields) {
  if (form == DateForm::kTime) return DateParser(text, before, fields).time_of_day();
  if (form < DateForm::kEpoch)
    return DateParser(text, before, fields).date(kTextForms[static_cast<std::size_t>(form)]);
  constexpr double kLastDay = 4e6;  // a day in some ten thousand years: the calendar can take it
  const auto number = parse_number(text);
  if (!number) return std::nullopt;
  const double days = *number / per_day(form) + (form == DateForm::kExcel ? kFirstOfExcel : 0);
  if (std::abs(days) > kLastDay) return std::nullopt;
  return DateText{.days = days, .has_time = days != std::floor(days)};
}

std::span<const DateForm> possible_forms(std::string_view text) {
  using enum DateForm;
  static constexpr std::array kYearFirst{kYmd, kYearMonth, kOrdinal, kWeek};
  static constexpr std::array kYearLast{kDmy, kMdy, kMonthYear};
  static constexpr std::array kClock{kTime};
  static constexpr std::array kNamed{kMdy, kMonthYear, kDmy, kYmd};
  constexpr std::size_t kDigitsOfYear = 4;
  const std::size_t digits = count_first(text, is_digit);
  if (digits >= kDigitsOfYear) return kYearFirst;
  if (digits == 0) return kNamed;
  return text.substr(digits).starts_with(':') ? std::span<const DateForm>(kClock) : kYearLast;
}

}  // namespace lockstep
