// The times that a series has, numbered as if none were missing: so that others follow.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// A pattern of times, which are days of a local clock since 1970-01-01, or any numbers.
class TimeGrid {
 public:
  TimeGrid() = default;
  /// The pattern of these ascending times: one step; the same times in all weeks, as business days and
  /// opening hours are; or the same days in all months, in each second one and so on, counted from the first
  /// or last day or business day. `dates`: they are days. Where none fits, the most frequent step, and
  /// holds() is false.
  TimeGrid(std::span<const double> times, bool dates);

  /// A pattern that is known, from its term(). Errors: DataError.
  explicit TimeGrid(const std::string& term);
  /// Sets holds() and coverage() by these times instead.
  void measure(std::span<const double> times);
  /// All of it as one word after the other, for a schema.
  std::string term() const;

  /// Whether the times are those of the pattern, and few of them are missing.
  bool holds() const { return holds_; }
  /// How many of the times between the first and the last there are: from 0 to 1.
  double coverage() const { return coverage_; }
  /// How many steps lie between two times; nothing if one is none of the pattern's.
  std::optional<Index> steps(double before, double now) const;
  /// The time so many steps behind the last one of the pattern up to `time`.
  double after(double time, Index steps) const;

  /// "1 day", "5 times a week, the same in all weeks", "1 month, by business days".
  std::string describe() const;
  /// After how many positions something may come again: a day, a week, a year.
  std::vector<Index> seasons() const;

 private:
  enum class Kind { kStep, kWeek, kMonth };
  /// How the days of a month are counted.
  enum class Count { kDays, kDaysFromEnd, kBusinessDays, kBusinessDaysFromEnd };

  static TimeGrid of_step(std::span<const double> times, bool dates);
  static std::optional<TimeGrid> of_weeks(std::span<const double> times);
  static std::optional<TimeGrid> of_months(std::span<const double> times, Count count);
  bool counts_from_end() const;
  bool counts_day(std::chrono::sys_days date) const;
  bool fits_well() const;
  Index block_of(double time) const;
  double time_of(Index place) const;
  /// The number of the last time up to this one.
  Index place_before(double time) const;

  Kind kind_ = Kind::kStep;
  bool dates_ = false;
  bool holds_ = false;
  double coverage_ = 0;
  double share_ = 0;   ///< of the steps between times that are whole ones of the pattern
  double length_ = 0;  ///< of a step; 0: there is no pair of times
  Count count_ = Count::kDays;
  Index months_ = 1;           ///< from one month with times to the next
  Index first_month_ = 0;      ///< one of them, since 1970-01
  double clock_ = 0;           ///< the time of day
  std::vector<double> slots_;  ///< days since Monday, or days as count_ counts them, ascending
};

}  // namespace lockstep
