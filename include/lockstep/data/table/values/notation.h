// How a column writes its numbers, where that is not the plain way: "1.234,5", "$12", "12 %", "1,234-"; its
// dates and times of day, and the features that they become; and what its texts look like, to find that out.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/message.h"
#include "lockstep/data/table/values/column_stats.h"

namespace lockstep {

/// The forms of dates. Those up to kMonthYear are found in texts; numbers are dates only where data.columns
/// says so.
enum class DateForm {
  kYmd,        ///< 2024-12-31, 20241231, with or without a time of day behind it, as ISO 8601 has it
  kDmy,        ///< 31.12.2024, 31/12/24, 31 Dec 2024, Tue, 31 Dec 2024
  kMdy,        ///< 12/31/2024, Dec 31, 2024, Tue Dec 31 23:59:00 2024
  kTime,       ///< 23:59, 23:59:30, 11:59 PM
  kWeek,       ///< 2024-W52-2, a week and its day as ISO 8601 counts them; 2024-W52: its Monday
  kOrdinal,    ///< 2024-366, the day of the year
  kYearMonth,  ///< 2024-12, 2024 Dec: the first day of the month
  kMonthYear,  ///< Dec-24, Dec 2024, 12/2024: the same
  kEpoch,      ///< seconds since 1970-01-01 00:00 UTC
  kEpochMs,    ///< milliseconds
  kEpochUs,    ///< microseconds
  kEpochNs,    ///< nanoseconds
  kExcel,      ///< days since 1899-12-30, as spreadsheets count them
};
inline constexpr std::size_t kTextDateForms = 8;

enum class DatePart {
  kDay,        ///< the number of the day, scaled as a number: one feature
  kDayOfYear,  ///< the day in the year: a feature for each of them, so that holidays can be learned
  kYear,       ///< the position in the year: this and the next ones are two features, sine and cosine
  kMonth,      ///< the month, one of twelve
  kWeekday,    ///< the day of the week
  kHour,       ///< the time of day
};

/// Years of two digits are those of 1969 to 2068, as POSIX has it, unless the config says another century.
inline constexpr Index kShortYearsBefore = 2069;

/// How a column of dates is read, and what is made of it.
struct DateReading {
  DateForm form = DateForm::kYmd;
  std::vector<DatePart> parts = {};
  std::optional<Index> before = {};  ///< years of two digits are the hundred before this one

  bool operator==(const DateReading&) const = default;
  /// Features of a date.
  Index width() const;
  /// "date(dmy, day, weekday, before=2010)", as data.columns takes it.
  std::string term() const;
};

/// The parts that are taken where none are named: the day, its place in the year and in the week; the hour,
/// if there are times of day.
std::vector<DatePart> usual_parts(DateForm form, bool has_times);
/// Whether each date of the form has a time of day.
bool counts_seconds(DateForm form);
/// Whether the form may have years of two digits.
bool has_short_years(DateForm form);

/// A value with its word in configs and in schemas: "dmy", "weekday".
template <class E>
struct Named {
  E value;
  const char* name;
};
inline constexpr Named<char> kNumberSigns[]{{'.', "point"},       {',', "comma"},         {' ', "space"},
                                            {'\'', "apostrophe"}, {'\'', "\xe2\x80\x99"}, {'\0', "none"}};
inline constexpr Named<DateForm> kDateForms[]{
    {DateForm::kYmd, "ymd"},          {DateForm::kDmy, "dmy"},          {DateForm::kMdy, "mdy"},
    {DateForm::kTime, "time"},        {DateForm::kWeek, "week"},        {DateForm::kOrdinal, "ordinal"},
    {DateForm::kYearMonth, "ym"},     {DateForm::kMonthYear, "my"},     {DateForm::kEpoch, "epoch"},
    {DateForm::kEpochMs, "epoch_ms"}, {DateForm::kEpochUs, "epoch_us"}, {DateForm::kEpochNs, "epoch_ns"},
    {DateForm::kExcel, "excel"}};
inline constexpr Named<DatePart> kDateParts[]{
    {DatePart::kDay, "day"},     {DatePart::kDayOfYear, "day_of_year"}, {DatePart::kYear, "year"},
    {DatePart::kMonth, "month"}, {DatePart::kWeekday, "weekday"},       {DatePart::kHour, "hour"}};
/// The word of a value in such a list; "" if it has none.
template <class Names, class E>
const char* word_of(const Names& names, E value) {
  const auto found = std::ranges::find(names, value, &Named<E>::value);
  return found == std::end(names) ? "" : found->name;
}
const char* to_string(DateForm form);

/// A date or a time of day that stands in a text.
struct DateText {
  double days = 0;  ///< since 1970-01-01, with the time of day as a fraction; UTC where a zone is named
  bool has_time = false;
  bool short_year = false;          ///< its year has two digits
  std::optional<double> zone = {};  ///< seconds that its zone is east of UTC, if it names one
};
/// A part of the text of a date: characters from `begin` to `end`.
struct DateField {
  enum Kind {
    kYear,
    kMonth,
    kMonthName,
    kDay,
    kEnding,  ///< "st" of "1st"
    kDayOfYear,
    kWeek,
    kDayOfWeek,
    kWeekday,  ///< by its name
    kHour,
    kMinute,
    kSecond,
    kFraction,  ///< of a second
    kHalf,      ///< "PM"
  } kind;
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// Nothing if `text` is no date of that form, or is on another day of the week than it says. `fields`: the
/// parts of a text form are put behind those that it has, in their order.
std::optional<DateText> read_date(std::string_view text, DateForm form, Index before = kShortYearsBefore,
                                  std::vector<DateField>* fields = nullptr);
/// How much a day is in a form of numbers; 1 of texts and of kExcel, whose day 0 is kFirstOfExcel.
double per_day(DateForm form);
inline constexpr double kFirstOfExcel = -25569;
inline std::optional<double> parse_date(std::string_view text, DateForm form,
                                        Index before = kShortYearsBefore) {
  const std::optional<DateText> date = read_date(text, form, before);
  return date ? std::optional(date->days) : std::nullopt;
}

/// The forms that a text may have which is no number, by how it begins. Several can read it only where the
/// year may have two digits.
std::span<const DateForm> possible_forms(std::string_view text);

/// "2024-12-31", with the time of day behind it where it has one, to the millisecond; of kTime that alone.
std::string write_date(double days, DateForm form = DateForm::kYmd);
/// Today in UTC, as read_date() counts days.
double today();
/// The days from 1900-01-01 to 2100-01-01, of which dates are that are written as one number.
inline constexpr std::pair kPlausibleDays{-25567.0, 47482.0};

inline constexpr Index kDaysOfYear = 366;

/// The day in a leap year, from 0 on: the same for a month and day of any year. `days` as read_date() gives
/// it.
Index day_of_year(double days);

/// Sine and cosine of kYear and the parts after it, of a number of days as read_date() gives it.
std::array<double, 2> cycle_of(double days, DatePart part);

struct NumberNotation {
  char decimal = '.';       ///< '.' or ','
  char thousands = 0;       ///< between groups of three digits: ',', '.', ' ' or '\''; 0: nothing
  std::string prefix = {};  ///< "$"; a number may stand without it, too
  std::string suffix = {};  ///< "%"; the number stays as it is written, 12 for "12 %"

  bool operator==(const NumberNotation&) const = default;
  /// "number(decimal=comma, prefix=\"$\")", as data.columns takes it.
  std::string term() const;
  /// For people: "a decimal comma, points between thousands and '$' before".
  std::string describe() const;
};

/// The number that `text` is from end to end. Beside what the notation says, a minus may stand at the end or
/// be that of typography (U+2212), and parentheses make a number negative, as accountants write them. A blank
/// between thousands may be a no-break space, an apostrophe that of typography (U+2019).
std::optional<double> parse_number(std::string_view text, const NumberNotation& notation);

/// How a file writes its numbers, as its columns show together.
struct FileSigns {
  char separator = ',';        ///< of the fields
  bool decimal_comma = false;  ///< some column has decimal commas, such as 31,9
  bool decimal_point = false;  ///< some column has decimal points

  /// Whether one of these signs is the decimal one of the file.
  bool tells() const { return decimal_comma != decimal_point; }
};

/// The values of a column that are no plain numbers, counted by the notations that read them.
class NotationCounts {
 public:
  /// A value that is no plain number.
  void add_text(std::string_view text);
  /// The text of a plain number.
  void add_number(std::string_view text, double number);
  void merge(const NotationCounts& other);

  /// The notation that reads most of the texts; nothing if none reads any. The file decides where "1,234" may
  /// be either. Where all numbers with a sign have three digits behind it, and all others are below 1,000
  /// (610, 1.049), it stands between thousands, unless the file says otherwise.
  struct Fit {
    NumberNotation notation = {};
    Index texts = 0;         ///< texts that it reads
    bool ambiguous = false;  ///< the sign may be the decimal one as well as that between thousands
    bool decimals = true;    ///< the decimal sign stands in some of them
    std::string example = {};
    std::vector<std::string> signs = {};  ///< for people: signs of some texts that any notation reads
    Index of_any_kind = 0;                ///< texts of numbers with any such sign or unit
    /// A text of each of several signs or units that stand beside the numbers: they are of several kinds.
    std::vector<std::string> mixed = {};

    /// For people: the notation and the signs.
    std::string describe() const;
  };
  std::optional<Fit> best(const FileSigns& file = {}) const;
  /// Numbers with such a decimal sign, which stands between no thousands.
  bool has_decimals(char sign) const { return signed_of(sign).numbers > signed_of(sign).grouped; }

  /// Numbers with a zero before other digits: "0123".
  Index leading_zeros() const { return leading_zeros_; }
  const std::string& leading_zero_example() const { return zero_example_; }
  /// Whether all plain numbers are digits with an E among them, as codes may be: 1E5.
  bool are_exponents() const { return exponents_ > 0 && exponents_ == plain_numbers_; }
  /// Whole numbers beyond 2^53, of which a double cannot tell neighbours apart.
  Index beyond_double() const { return beyond_double_; }
  /// The texts that no notation reads, if they are few.
  const ValueCounts& others() const { return others_; }
  /// The texts that are no date of any form, if they are few.
  const ValueCounts& no_dates() const { return no_dates_; }
  /// The form of a date, or of a time of day, that reads most of the texts; nothing if none reads any.
  struct DateFit {
    DateForm form = DateForm::kYmd;
    Index texts = 0;  ///< texts that it reads
    Index times = 0;  ///< texts of any form that have a time of day
    std::string example = {};
    std::optional<DateForm> other = {};  ///< a form of texts that this one does not read
    std::string other_example = {};      ///< a text of that form
    bool ambiguous = false;              ///< the day may stand before the month, or behind it
  };
  std::optional<DateFit> best_date() const;
  /// One of the texts that no notation reads.
  const std::string& other_example() const { return other_example_; }
  /// Some of the plain numbers have a point.
  bool has_points() const { return with_point_ > 0; }

  template <class Message>
  void pass(Message& message) {
    message(fits_, signs_, points_, commas_, hundreds_, large_wholes_, group_example_, with_point_,
            leading_zeros_, beyond_double_, date_fits_, dates_, times_, zero_example_, example_,
            other_example_, affixes_, units_, unit_fits_, digit_texts_, plain_numbers_, exponents_, others_,
            no_dates_);
    for (std::string& example : date_examples_) message(example);
  }

 private:
  /// Numbers with a sign that may be the decimal one.
  struct Signed {
    Index numbers = 0;
    Index grouped = 0;  ///< whose sign may stand between thousands: 1.049, 12.345.678
  };
  const Signed& signed_of(char sign) const { return sign == '.' ? points_ : commas_; }
  void add_date(std::string_view text);
  /// Signs or units beside numbers.
  struct Affix {
    std::string prefix;
    std::string suffix;
    Index count = 0;
    std::string example;

    template <class Message>
    void pass(Message& message) {
      message(prefix, suffix, count, example);
    }
  };
  static void count_affix(std::vector<Affix>& affixes, const Affix& affix);
  bool add_unit(std::string_view text);
  void count_signs(std::string_view core);
  bool may_be_grouped(char sign) const;
  struct Choice {
    std::size_t form;  ///< of those in notation.cpp
    bool ambiguous = false;
  };
  std::optional<Choice> choose_form(std::span<const Index> fits, const FileSigns& file) const;
  bool are_codes() const;

  static constexpr std::size_t kFormCount = 7;
  static constexpr std::size_t kSignCount = 4;
  static constexpr Index kMaxKept = 16;

  std::array<Index, kFormCount> fits_{};
  std::array<Index, kSignCount> signs_{};  // numbers with such a sign
  Signed points_;
  Signed commas_;
  Index hundreds_ = 0;      // numbers of three digits without such a sign
  Index large_wholes_ = 0;  // those from 1,000 on
  std::string group_example_;
  Index with_point_ = 0;  // plain numbers, which a decimal comma would not read
  Index leading_zeros_ = 0;
  Index beyond_double_ = 0;
  std::array<Index, kTextDateForms> date_fits_{};
  Index dates_ = 0;  // texts that some form reads
  Index times_ = 0;  // texts that are dates, or times, with a time of day
  std::string zero_example_;
  std::string example_;
  std::array<std::string, kTextDateForms> date_examples_;  // of texts that no earlier form reads
  std::string other_example_;
  std::vector<Affix> affixes_;  // known signs, and none
  std::vector<Affix> units_;    // any others
  std::array<Index, kFormCount> unit_fits_{};
  Index digit_texts_ = 0;
  Index plain_numbers_ = 0;
  Index exponents_ = 0;  // of them those without a point or sign
  ValueCounts others_{kMaxKept};
  ValueCounts no_dates_{kMaxKept};
};

}  // namespace lockstep
