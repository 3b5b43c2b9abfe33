#include "time_axis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "data/parts/fold_values.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr double kSecondsOfDay = 86400;

using std::chrono::day;
using std::chrono::sys_days;
using std::chrono::year_month;
using std::chrono::year_month_day;

year_month_day calendar_day(double days) {
  return sys_days{std::chrono::days{static_cast<int>(std::floor(days))}};
}

Index months_between(const year_month_day& before, const year_month_day& now) {
  return (now.year() / now.month() - before.year() / before.month()).count();
}

template <class Key>
Key most_frequent(const std::map<Key, Index>& counts) {
  const auto of = [](const auto& entry) { return entry.second; };
  return std::ranges::max_element(counts, {}, of)->first;
}

// Differences of dates in whole seconds, so that fractions of days are told apart by no rounding.
double rounded(double difference, bool dates) {
  return dates ? std::round(difference * kSecondsOfDay) / kSecondsOfDay : difference;
}

// Calls use(i) for each position that has one of its series before it.
template <class Use>
void for_each_step(const TimeAxis& axis, const Use& use) {
  for (Index series = 0; series < axis.series_count(); ++series) {
    const Range positions = axis.positions_of(series);
    for (Index i = positions.begin + 1; i < positions.end; ++i) use(i);
  }
}

// The most frequent step; months where it is as long as some.
TimeStep find_step(const TimeAxis& axis) {
  std::map<double, Index> lengths;
  std::map<Index, Index> months;
  bool same_days = true;
  for_each_step(axis, [&](Index i) {
    const double before = at(axis.times, i - 1);
    const double now = at(axis.times, i);
    ++lengths[rounded(now - before, axis.form.has_value())];
    if (!axis.form) return;
    const year_month_day from = calendar_day(before);
    const year_month_day to = calendar_day(now);
    ++months[months_between(from, to)];
    constexpr day kLastDays{28};
    same_days &= from.day() == to.day() || std::min(from.day(), to.day()) >= kLastDays;
  });
  if (lengths.empty()) return {};
  TimeStep step{.length = most_frequent(lengths)};
  constexpr double kShortestMonth = 28;
  if (!axis.form || *axis.form == DateForm::kTime || step.length < kShortestMonth ||
      step.length != std::floor(step.length) || lengths.size() < 2)
    return step;
  const Index usual = most_frequent(months);
  if (usual > 0 && same_days) step.months = usual;
  step.month_ends =
      std::ranges::all_of(axis.times, [](double time) { return calendar_day(time + 1).day() == day{1}; });
  return step;
}

// How many steps lie between two times; nothing if it is no whole number.
std::optional<Index> steps_between(const TimeAxis& axis, double before, double now) {
  if (axis.step.months > 0) {
    const Index months = months_between(calendar_day(before), calendar_day(now));
    const bool is_whole = months > 0 && months % axis.step.months == 0;
    return is_whole ? std::optional(months / axis.step.months) : std::nullopt;
  }
  const double steps = (now - before) / axis.step.length;
  constexpr double kTolerance = 1e-6;
  const double whole = std::round(steps);
  if (whole < 1 || std::abs(steps - whole) > kTolerance * whole) return std::nullopt;
  return static_cast<Index>(whole);
}

// Steps that are longer than the usual one, or no multiple of it, and puts positions where times are missing.
class Gaps {
 public:
  Gaps(TimeAxis& axis, FillGaps fill, const std::string& column)
      : axis_(axis), fill_(fill), column_(column) {}

  void find() {
    TimeAxis filled = axis_;
    filled.begins = {0};
    filled.records.clear();
    filled.times.clear();
    for (Index series = 0; series < axis_.series_count(); ++series) {
      const Range positions = axis_.positions_of(series);
      for (Index i = positions.begin; i < positions.end; ++i) {
        if (i > positions.begin) compare_with_step(i, filled);
        append(filled, i, at(axis_.times, i), false);
      }
      filled.begins.push_back(filled.positions());
    }
    axis_ = std::move(filled);
    describe();
  }

 private:
  void append(TimeAxis& to, Index position, double time, bool is_filled) const {
    to.records.push_back(at(axis_.records, position));
    to.times.push_back(time);
    to.filled.push_back(is_filled);
  }

  void compare_with_step(Index i, TimeAxis& filled) {
    const double before = at(axis_.times, i - 1);
    const std::optional<Index> steps = steps_between(axis_, before, at(axis_.times, i));
    if (steps == 1) return;
    std::string& first = steps ? first_gap_ : first_irregular_;
    ++(steps ? gaps_ : irregular_);
    missing_ += steps ? *steps - 1 : 0;
    if (first.empty()) {
      const std::string name = axis_.series_name(axis_.series_of(i));
      first = fmt::format("{} to {}{}", axis_.text(before), axis_.text(at(axis_.times, i)),
                          name.empty() ? "" : " of " + name);
    }
    for (Index step = 1; fill_ != FillGaps::kNone && steps && step < *steps; ++step)
      append(filled, i - 1, axis_.after(before, step), true);
  }

  void describe() {
    const char* treatment =
        fill_ == FillGaps::kNone
            ? "positions are taken as they come (data.fill_gaps = \"last\" or \"zero\" fills them)"
            : "they are filled";
    if (gaps_ > 0)
      axis_.notes.push_back(
          {.text = fmt::format("column {} lacks {} in {}, the first from {}: {}", in_quotes(column_),
                               plural(missing_, "time"), plural(gaps_, "gap"), first_gap_, treatment),
           .figures = {{"gaps", {{"missing", missing_}, {"gaps", gaps_}, {"first", first_gap_}}}}});
    if (irregular_ > 0)
      axis_.notes.push_back(
          {.text = fmt::format(
               "column {} has {} that {} no multiple of the usual one, the first from {}: positions are "
               "taken as they come",
               in_quotes(column_), plural(irregular_, "step"), irregular_ == 1 ? "is" : "are",
               first_irregular_),
           .figures = {{"irregular", {{"steps", irregular_}, {"first", first_irregular_}}}}});
  }

  TimeAxis& axis_;
  FillGaps fill_;
  const std::string& column_;
  Index gaps_ = 0;
  Index missing_ = 0;
  Index irregular_ = 0;
  std::string first_gap_;
  std::string first_irregular_;
};

std::string setting_of(const char* key, const std::string& column) {
  return fmt::format("{} = {}", key, in_quotes(column));
}

// The number of the series of each of so many records, in the order in which they first come.
std::vector<Index> number_series(std::size_t rows, const WindowOptions& windows, ColumnTexts& texts,
                                 TimeAxis& axis) {
  std::vector<std::vector<std::string>> values(rows);
  for (const std::string& column : windows.series) {
    ColumnValues found = texts.values(column, setting_of("data.series", column));
    for (std::size_t i = 0; i < rows; ++i) values[i].push_back(std::move(found.texts[i]));
  }
  std::map<std::vector<std::string>, Index> numbers;
  std::vector<Index> of_record;
  for (std::vector<std::string>& names : values) {
    const auto [entry, is_new] = numbers.emplace(names, axis.series_count());
    if (is_new) axis.series.push_back(std::move(names));
    of_record.push_back(entry->second);
  }
  return of_record;
}

void refuse_one_time(const TimeAxis& axis, const RecordSource& table, const std::string& column) {
  Index pairs = 0;
  Index first = 0;
  for_each_step(axis, [&](Index i) {
    if (at(axis.times, i) == at(axis.times, i - 1) && pairs++ == 0) first = i;
  });
  if (pairs == 0) return;
  const std::string name = axis.series_name(axis.series_of(first));
  throw DataError(
      "'{}', column {}: records {} and {} (counted from 0){} have the same time, {}, and so have {} in all: "
      "expected one record for each time{}",
      table.info().name, in_quotes(column), with_commas(table.position(at(axis.records, first - 1))),
      with_commas(table.position(at(axis.records, first))), name.empty() ? "" : ", of " + name + ",",
      axis.text(at(axis.times, first)), plural(pairs, "pair"),
      name.empty() ? "; if the table has several series, data.series names the columns that tell them apart"
                   : " of a series");
}

}  // namespace

Index TimeAxis::series_of(Index position) const {
  return std::ranges::upper_bound(begins, position) - begins.begin() - 1;
}

std::string TimeAxis::series_name(Index number) const {
  const std::vector<std::string>& values = at(series, number);
  return values.empty() ? "" : in_quotes(fmt::format("{}", fmt::join(values, ", ")));
}

double TimeAxis::after(double time, Index steps) const {
  if (step.months == 0) return time + static_cast<double>(steps) * step.length;
  const year_month_day from = calendar_day(time);
  const year_month month = from.year() / from.month() + std::chrono::months{steps * step.months};
  const day last = (month / std::chrono::last).day();  // it may have no such day
  const sys_days date{month / (step.month_ends ? last : std::min(from.day(), last))};
  return static_cast<double>(date.time_since_epoch().count()) + (time - std::floor(time));
}

std::string TimeAxis::text(double time) const {
  return form ? write_date(time, *form == DateForm::kTime ? DateForm::kTime : DateForm::kYmd)
              : fmt::format("{}", time);
}

TimeAxis read_time_axis(const RecordSource& table, const WindowOptions& windows, ColumnTexts& texts,
                        PeerGroup& peers) {
  const std::string& column = windows.time;
  const std::string setting = setting_of("data.time", column);
  TimeAxis axis;
  peers.agree([&] {
    const FoldTimes times = times_of(texts.values(column, setting), setting);
    const std::vector<Index> series = number_series(times.numbers.size(), windows, texts, axis);
    axis.form = times.form;
    axis.records.resize(times.numbers.size());
    std::iota(axis.records.begin(), axis.records.end(), 0);
    std::ranges::stable_sort(axis.records, {}, [&](Index record) {
      return std::pair(at(series, record), at(times.numbers, record));
    });
    axis.begins = {0};
    for (Index i = 0; i < axis.positions(); ++i) {
      const Index record = at(axis.records, i);
      axis.times.push_back(at(times.numbers, record));
      if (i > 0 && at(series, record) != at(series, at(axis.records, i - 1))) axis.begins.push_back(i);
    }
    axis.begins.push_back(axis.positions());
    refuse_one_time(axis, table, column);
    axis.step = find_step(axis);
    Gaps(axis, windows.fill, column).find();
  });
  return axis;
}

}  // namespace lockstep
