// A graph has no calendar, so year and month are computed from the number of the day (Hinnant 2021,
// "chrono-Compatible Low-Level Date Algorithms", https://howardhinnant.github.io/date_algorithms.html). Years
// begin in March there, which puts the day that only leap years have at the end of a year. An era is 400 such
// years, after which the calendar repeats.
#include "calendar.h"

#include <numbers>

namespace lockstep {
namespace {

// A double for each record, [N, 1].
class Number {
 public:
  Number(OnnxGraph& graph, std::string value) : graph_(&graph), value_(std::move(value)) {}

  Number operator+(const Number& other) const { return add("Add", other.value_); }
  Number operator-(const Number& other) const { return add("Sub", other.value_); }
  Number operator*(const Number& other) const { return add("Mul", other.value_); }
  Number operator/(const Number& other) const { return add("Div", other.value_); }
  Number operator+(double constant) const { return add("Add", graph_->add_double(constant)); }
  Number operator-(double constant) const { return add("Sub", graph_->add_double(constant)); }
  Number operator*(double constant) const { return add("Mul", graph_->add_double(constant)); }
  Number operator/(double constant) const { return add("Div", graph_->add_double(constant)); }
  Number floor() const { return {*graph_, graph_->add("Floor", {value_})}; }
  Number modulo(double constant) const { return *this - (*this / constant).floor() * constant; }
  const std::string& value() const { return value_; }

 private:
  Number add(const char* operation, const std::string& other) const {
    return {*graph_, graph_->add(operation, {value_, other})};
  }

  OnnxGraph* graph_;
  std::string value_;
};

constexpr double kDaysToEra = 719468;  // from 0000-03-01 to 1970-01-01
constexpr double kDaysOfEra = 146097;
constexpr double kDaysTo1January = 306;  // from 1 March on
constexpr double kThursday = 4;          // 1970-01-01 was one

// Years of an era begin with 0, days of a year with 0 on 1 March.
struct MarchDate {
  Number year;
  Number day;
};

MarchDate march_date(const Number& whole_days) {
  const Number day = (whole_days + kDaysToEra).modulo(kDaysOfEra);
  const Number leap_days = (day / 1460).floor() - (day / 36524).floor() + (day / (kDaysOfEra - 1)).floor();
  const Number year = ((day - leap_days) / 365).floor();
  return {year, day - (year * 365 + (year / 4).floor() - (year / 100).floor())};
}

// Leap years from year 0 up to `year`, less one.
Number leap_years(const Number& year) {
  return (year / 4).floor() - (year / 100).floor() + (year / 400).floor();
}

// 0 in January.
Number month(const Number& whole_days) {
  const Number from_march = ((march_date(whole_days).day * 5 + 2) / 153).floor();
  return (from_march + 2).modulo(12);
}

// The share of the year that has passed.
Number share_of_year(const Number& days, const Number& whole_days) {
  const MarchDate date = march_date(whole_days);
  const Number next_year = (date.day / kDaysTo1January).floor();  // 1 in January and February, else 0
  const Number year = date.year + next_year;
  const Number leap_day = leap_years(year) - leap_years(year - 1);
  const Number length = leap_day + 365;
  const Number passed = date.day + leap_day + (365 - kDaysTo1January) - next_year * length;
  return (passed + (days - whole_days)) / length;
}

Number share_of_cycle(const Number& days, DatePart part) {
  const Number whole = days.floor();
  if (part == DatePart::kHour) return days - whole;
  if (part == DatePart::kWeekday) return (whole + kThursday).modulo(7) / 7;
  if (part == DatePart::kMonth) return month(whole) / 12;
  return share_of_year(days, whole);
}

}  // namespace

std::string add_day_of_year(OnnxGraph& graph, const std::string& days) {
  // In this calendar 1 March is always as far from the year's beginning as in a leap year.
  const Number from_march = march_date(Number(graph, days).floor()).day;
  const Number day = (from_march + (static_cast<double>(kDaysOfYear) - kDaysTo1January)).modulo(kDaysOfYear);
  return graph.add_one_hot(day.value(), onnx::TensorProto::DOUBLE, kDaysOfYear);
}

std::pair<std::string, std::string> add_cycle(OnnxGraph& graph, const std::string& days, DatePart part) {
  const Number angle = share_of_cycle({graph, days}, part) * (2 * std::numbers::pi);
  // Not every runtime has a cosine of doubles.
  const std::string x = graph.cast(angle.value(), onnx::TensorProto::FLOAT);
  return {graph.add("Sin", {x}), graph.add("Cos", {x})};
}

}  // namespace lockstep
