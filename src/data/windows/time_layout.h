// How a column writes its times, so that others can be written like them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/notation.h"

namespace lockstep {

class TimeLayout {
 public:
  /// `form`: nothing: times are numbers. `before`: as read_date() takes it.
  explicit TimeLayout(std::optional<DateForm> form = {}, Index before = kShortYearsBefore)
      : form_(form), before_(before) {}

  /// Learns from a text of this form. Times are written like the last one that has a time of day or, where
  /// none has, like the last one; without zeros in front where any text lacks them.
  void add(std::string_view text);

  bool has_zone() const { return zone_.has_value(); }
  /// How far the clock of that text is ahead of UTC, in days; 0 where it names no zone.
  double zone() const { return zone_.value_or(0); }
  /// Whether a local clock, which names no zone, may show this time twice: early on a Sunday.
  bool may_repeat_an_hour(double time) const;
  /// `time`: of a local clock: a number of days as read_date() has it, with zone() added to it; or a number.
  std::string write(double time) const;

 private:
  std::string write_number(double number) const;

  std::optional<DateForm> form_;
  Index before_;
  std::string text_;
  std::vector<DateField> fields_;
  std::optional<double> zone_ = {};
  bool has_time_ = false;
  bool has_zeros_ = true;        // in front of days, months and hours below ten
  bool has_long_names_ = false;  // of months and weekdays
};

}  // namespace lockstep
