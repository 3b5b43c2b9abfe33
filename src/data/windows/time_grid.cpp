#include "time_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month;
using std::chrono::year_month_day;

constexpr double kUnitsOfDay = 86'400e6;        // microseconds
constexpr double kTolerance = 2 / kUnitsOfDay;  // of days as floating-point numbers
constexpr double kWeek = 7;
constexpr double kFirstMonday = 4;  // 1970-01-05
constexpr double kHalf = 0.5;
constexpr double kNearlyAll = 0.9;

// Microseconds, so that differences of one length are one number.
double rounded(double days) {
  return std::round(days * kUnitsOfDay) / kUnitsOfDay;
}

sys_days date_of(double time) {
  return sys_days{std::chrono::days{static_cast<int>(std::floor(time + kTolerance))}};
}

Index month_of(sys_days date) {
  const year_month_day day{date};
  return (static_cast<int>(day.year()) - 1970) * Index{12} + static_cast<unsigned>(day.month()) - 1;
}

// The first day of a month since 1970-01.
sys_days begin_of(Index month) {
  const year_month first = std::chrono::year{1970} / std::chrono::January;
  return sys_days{(first + std::chrono::months{month}) / std::chrono::day{1}};
}

double days_since_1970(sys_days date) {
  return static_cast<double>(date.time_since_epoch().count());
}

// The values that stand in at least half of so many blocks, ascending.
std::vector<double> frequent(const std::map<double, Index>& counts, Index blocks) {
  std::vector<double> values;
  for (const auto& [value, count] : counts) {
    if (2 * count >= blocks) values.push_back(value);
  }
  return values;
}

}  // namespace

TimeGrid TimeGrid::of_step(std::span<const double> times, bool dates) {
  TimeGrid grid;
  grid.dates_ = dates;
  std::map<double, Index> lengths;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double length = times[i] - times[i - 1];
    ++lengths[dates ? rounded(length) : length];
  }
  if (!lengths.empty())
    grid.length_ =
        std::ranges::max_element(lengths, {}, [](const auto& entry) { return entry.second; })->first;
  return grid;
}

std::optional<TimeGrid> TimeGrid::of_weeks(std::span<const double> times) {
  constexpr std::size_t kMaxSlots = 7 * 24 * 60;
  TimeGrid grid;
  grid.kind_ = Kind::kWeek;
  grid.dates_ = true;
  std::map<double, Index> counts;
  for (const double time : times) {
    ++counts[rounded(time - kFirstMonday - kWeek * static_cast<double>(grid.block_of(time)))];
    if (counts.size() > kMaxSlots) return std::nullopt;
  }
  const Index weeks = grid.block_of(times.back()) - grid.block_of(times.front());
  grid.slots_ = frequent(counts, weeks);
  if (weeks < 2 || grid.slots_.empty()) return std::nullopt;
  return grid;
}

std::optional<TimeGrid> TimeGrid::of_months(std::span<const double> times, Count count) {
  TimeGrid grid;
  grid.kind_ = Kind::kMonth;
  grid.dates_ = true;
  grid.count_ = count;
  grid.clock_ = rounded(times.front() - std::floor(times.front() + kTolerance));
  grid.first_month_ = month_of(date_of(times.front()));
  grid.months_ = 0;
  std::map<double, Index> counts;
  for (const double time : times) {
    const sys_days date = date_of(time);
    const Index month = month_of(date);
    grid.months_ = std::gcd(grid.months_, month - grid.first_month_);
    const sys_days begin = begin_of(month);
    const sys_days end = begin_of(month + 1);
    const bool from_end = grid.counts_from_end();
    Index number = 0;
    for (sys_days other = from_end ? date + std::chrono::days{1} : begin; other < (from_end ? end : date);
         other += std::chrono::days{1})
      number += grid.counts_day(other) ? 1 : 0;
    ++counts[static_cast<double>(number)];
  }
  if (grid.months_ == 0) return std::nullopt;
  const Index blocks = grid.block_of(times.back()) - grid.block_of(times.front());
  if (blocks < 2) return std::nullopt;
  grid.slots_ = frequent(counts, blocks);
  // The 30th of a month, or its last day if it has none.
  if (count == Count::kDays && grid.slots_.empty()) grid.slots_ = {counts.rbegin()->first};
  if (grid.counts_from_end()) std::ranges::reverse(grid.slots_);
  if (grid.slots_.empty()) return std::nullopt;
  return grid;
}

TimeGrid::TimeGrid(std::span<const double> times, bool dates) {
  constexpr double kShortestMonth = 28;
  *this = of_step(times, dates);
  if (length_ == 0) return;
  measure(times);
  // Two or three months may be as long as each other.
  if (!dates || (fits_well() && length_ < kShortestMonth)) return;
  using enum Count;
  std::vector<std::optional<TimeGrid>> others{of_weeks(times)};
  for (const Count count : {kDays, kDaysFromEnd, kBusinessDays, kBusinessDaysFromEnd})
    others.push_back(of_months(times, count));
  const TimeGrid* best = nullptr;
  for (std::optional<TimeGrid>& other : others) {
    if (other) other->length_ = length_;
    if (other) other->measure(times);
    if (!other || !other->fits_well() || (fits_well() && other->slots_.size() > 1)) continue;
    if (best == nullptr || other->share_ > best->share_) best = &*other;
  }
  if (best != nullptr) *this = *best;
}

TimeGrid::TimeGrid(const std::string& term) {
  std::istringstream words(term);
  int kind = 0;
  int count = 0;
  words >> kind >> dates_ >> length_ >> count >> months_ >> first_month_ >> clock_;
  const bool known =
      words && kind >= 0 && kind <= 2 && count >= 0 && count <= 3 && length_ > 0 && months_ > 0;
  kind_ = static_cast<Kind>(kind);
  count_ = static_cast<Count>(count);
  for (double slot = 0; words >> slot;) slots_.push_back(slot);
  if (!known || slots_.empty() != (kind_ == Kind::kStep))
    throw DataError("'{}' is no pattern of times", excerpt(term));
}

std::string TimeGrid::term() const {
  return fmt::format("{} {:d} {} {} {} {} {} {}", static_cast<int>(kind_), dates_, length_,
                     static_cast<int>(count_), months_, first_month_, clock_, fmt::join(slots_, " "));
}

bool TimeGrid::counts_from_end() const {
  return count_ == Count::kDaysFromEnd || count_ == Count::kBusinessDaysFromEnd;
}

bool TimeGrid::counts_day(std::chrono::sys_days date) const {
  const bool all = count_ == Count::kDays || count_ == Count::kDaysFromEnd;
  return all || std::chrono::weekday{date}.iso_encoding() <= 5;
}

bool TimeGrid::fits_well() const {
  return holds_ && coverage_ >= kNearlyAll;
}

void TimeGrid::measure(std::span<const double> times) {
  Index fitting = 0;
  Index all = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const std::optional<Index> between = steps(times[i - 1], times[i]);
    fitting += between ? 1 : 0;
    all += between.value_or(0);
  }
  const auto pairs = static_cast<double>(times.size()) - 1;
  share_ = static_cast<double>(fitting) / pairs;
  coverage_ = all > 0 ? static_cast<double>(fitting) / static_cast<double>(all) : 0;
  holds_ = share_ >= kNearlyAll && coverage_ >= kHalf;
}

Index TimeGrid::block_of(double time) const {
  if (kind_ == Kind::kWeek) return static_cast<Index>(std::floor((time - kFirstMonday + kTolerance) / kWeek));
  const Index months = month_of(date_of(time)) - first_month_;
  return months >= 0 ? months / months_ : -((months_ - 1 - months) / months_);
}

double TimeGrid::time_of(Index place) const {
  const Index slots = std::ssize(slots_);
  const Index slot = (place % slots + slots) % slots;
  const Index block = (place - slot) / slots;
  const double number = at(slots_, slot);
  if (kind_ == Kind::kWeek) return kFirstMonday + kWeek * static_cast<double>(block) + number;
  const Index month = first_month_ + block * months_;
  const sys_days begin = begin_of(month);
  const sys_days last = begin_of(month + 1) - std::chrono::days{1};
  sys_days date = counts_from_end() ? last : begin;
  const std::chrono::days step{counts_from_end() ? -1 : 1};
  auto left = static_cast<Index>(number);
  while (!counts_day(date)) date += step;
  for (; left > 0; --left) {
    do {
      date += step;
    } while (!counts_day(date));
  }
  return days_since_1970(std::clamp(date, begin, last)) + clock_;
}

Index TimeGrid::place_before(double time) const {
  const Index slots = std::ssize(slots_);
  const Index block = block_of(time);
  // The first place of the block whose time is later.
  Index low = 0;
  for (Index high = slots; low < high;) {
    const Index middle = (low + high) / 2;
    if (time_of(block * slots + middle) <= time + kTolerance) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return block * slots + low - 1;
}

std::optional<Index> TimeGrid::steps(double before, double now) const {
  if (kind_ == Kind::kStep) {
    const double ratio = (now - before) / length_;
    const double whole = std::round(ratio);
    const double tolerance = dates_ ? kTolerance / length_ : 1e-6 * whole;
    if (!(whole >= 1) || std::abs(ratio - whole) > tolerance) return std::nullopt;
    return static_cast<Index>(whole);
  }
  const Index from = place_before(before);
  const Index to = place_before(now);
  const bool on_grid = before - time_of(from) <= kTolerance && now - time_of(to) <= kTolerance && to > from;
  return on_grid ? std::optional(to - from) : std::nullopt;
}

double TimeGrid::after(double time, Index steps) const {
  if (kind_ == Kind::kStep) return time + static_cast<double>(steps) * length_;
  return time_of(place_before(time) + steps);
}

std::string TimeGrid::describe() const {
  constexpr Index kDayLength = 86'400;
  constexpr Index kHour = 3600;
  if (kind_ == Kind::kWeek)
    return fmt::format("{} a week, the same in all weeks", plural(std::ssize(slots_), "time"));
  if (kind_ == Kind::kMonth) {
    const std::string every = plural(months_, "month");
    if (slots_.size() > 1) return fmt::format("{} in {}", plural(std::ssize(slots_), "time"), every);
    return count_ == Count::kBusinessDaysFromEnd ? every + ", by business days" : every;
  }
  if (!dates_) return fmt::format("{:g}", length_);
  const double seconds = length_ * double{kDayLength};
  const Index whole = std::llround(seconds);
  if (std::abs(seconds - static_cast<double>(whole)) > 1e-6) return fmt::format("{:.6g} seconds", seconds);
  if (whole % kDayLength == 0) return plural(whole / kDayLength, "day");
  return whole % kHour == 0 ? plural(whole / kHour, "hour") : human_seconds(static_cast<double>(whole));
}

std::vector<Index> TimeGrid::seasons() const {
  constexpr Index kMonthsOfYear = 12;
  constexpr Index kWeeksOfYear = 52;
  constexpr Index kDay = 86'400;
  constexpr Index kDaysOfWeek = 7;
  const Index slots = std::ssize(slots_);
  if (kind_ == Kind::kMonth) return {std::max<Index>(2, kMonthsOfYear * slots / months_)};
  if (kind_ == Kind::kWeek) {
    std::map<double, Index> by_day;
    for (const double slot : slots_) ++by_day[std::floor(slot + kTolerance)];
    const Index of_day = by_day.begin()->second;
    const bool alike = std::ranges::all_of(by_day, [&](const auto& day) { return day.second == of_day; });
    std::vector<Index> found;
    if (alike && of_day > 1) found.push_back(of_day);
    if (slots > 1) found.push_back(slots);
    if (of_day == 1 && alike) found.push_back(kWeeksOfYear * slots);
    return found;
  }
  const Index seconds = std::llround(length_ * double{kDay});
  if (seconds == kDay) return {5, kDaysOfWeek, 365};  // 5: of a week without its end
  if (seconds == kDay * kDaysOfWeek) return {kWeeksOfYear};
  if (!dates_ || seconds == 0 || 2 * seconds > kDay || kDay % seconds != 0) return {};
  return {kDay / seconds, kDay * kDaysOfWeek / seconds};
}

}  // namespace lockstep
