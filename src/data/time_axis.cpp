#include "time_axis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "fold_values.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr double kSecondsOfDay = 86400;

// A month of the calendar, counted from the year 0, and the day in it.
struct CalendarDay {
  Index month = 0;
  Index day = 0;
};

CalendarDay calendar_day(double days) {
  const std::string text = write_date(std::floor(days));
  const std::size_t month = text.find('-', 1);
  return {std::stoll(text.substr(0, month)) * 12 + std::stoll(text.substr(month + 1, 2)) - 1,
          std::stoll(text.substr(month + 4, 2))};
}

// The day of a month, or its last one where it has no such day.
double day_in_month(Index month, Index day) {
  for (;; --day) {
    const auto found =
        parse_date(fmt::format("{:04}-{:02}-{:02}", month / 12, month % 12 + 1, day), DateForm::kYmd);
    if (found) return *found;
  }
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

// The most frequent step; months where it is as long as some.
TimeStep find_step(const TimeAxis& axis) {
  std::map<double, Index> lengths;
  std::map<Index, Index> months;
  for (Index series = 0; series < axis.series_count(); ++series) {
    for (Index i = at(axis.begins, series) + 1; i < at(axis.begins, series + 1); ++i)
      ++lengths[rounded(at(axis.times, i) - at(axis.times, i - 1), axis.form.has_value())];
  }
  if (lengths.empty()) return {};
  TimeStep step{.length = most_frequent(lengths)};
  constexpr double kShortestMonth = 28;
  if (!axis.form || *axis.form == DateForm::kTime || step.length < kShortestMonth ||
      step.length != std::floor(step.length) || lengths.size() < 2)
    return step;
  Index whole = 0;
  Index all = 0;
  for (Index series = 0; series < axis.series_count(); ++series) {
    for (Index i = at(axis.begins, series) + 1; i < at(axis.begins, series + 1); ++i, ++all) {
      const CalendarDay before = calendar_day(at(axis.times, i - 1));
      const CalendarDay now = calendar_day(at(axis.times, i));
      ++months[now.month - before.month];
      constexpr Index kLastDays = 28;
      whole += now.day == before.day || (now.day >= kLastDays && before.day >= kLastDays) ? 1 : 0;
    }
  }
  const Index usual = most_frequent(months);
  if (usual > 0 && whole == all) step.months = usual;
  step.month_ends =
      std::ranges::all_of(axis.times, [](double time) { return calendar_day(time + 1).day == 1; });
  return step;
}

// How many steps lie between two times; nothing if it is no whole number.
std::optional<Index> steps_between(const TimeAxis& axis, double before, double now) {
  if (axis.step.months > 0) {
    const Index months = calendar_day(now).month - calendar_day(before).month;
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
      for (Index i = at(axis_.begins, series); i < at(axis_.begins, series + 1); ++i) {
        if (i > at(axis_.begins, series)) compare_with_step(i, filled);
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
      axis_.notes.push_back(fmt::format("column {} lacks {} in {}, the first from {}: {}", in_quotes(column_),
                                        plural(missing_, "time"), plural(gaps_, "gap"), first_gap_,
                                        treatment));
    if (irregular_ > 0)
      axis_.notes.push_back(fmt::format(
          "column {} has {} that {} no multiple of the usual one, the first from {}: positions are taken as "
          "they come",
          in_quotes(column_), plural(irregular_, "step"), irregular_ == 1 ? "is" : "are", first_irregular_));
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

// The number of the series of each record, in the order in which they first come.
std::vector<Index> read_series(const RecordSource& table, const DataOptions& data, PeerGroup& peers,
                               TimeAxis& axis) {
  const auto rows = static_cast<std::size_t>(table.info().rows);
  std::vector<std::vector<std::string>> values(rows);
  for (const std::string& column : data.table.windows.series) {
    const ValidationPart part{.by = ValidationPart::By::kGroup,
                              .column = column,
                              .setting = fmt::format("data.series = {}", in_quotes(column))};
    FoldValues found = read_column(part, data, table, peers);
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
  for (Index series = 0; series < axis.series_count(); ++series) {
    for (Index i = at(axis.begins, series) + 1; i < at(axis.begins, series + 1); ++i) {
      if (at(axis.times, i) != at(axis.times, i - 1)) continue;
      if (pairs++ == 0) first = i;
    }
  }
  if (pairs == 0) return;
  const std::string name = axis.series_name(axis.series_of(first));
  throw DataError(fmt::format(
      "'{}', column {}: records {} and {} (counted from 0){} have the same time, {}, and so have {} in all: "
      "expected one record for each time{}",
      table.info().name, in_quotes(column), with_commas(table.position(at(axis.records, first - 1))),
      with_commas(table.position(at(axis.records, first))), name.empty() ? "" : ", of " + name + ",",
      axis.text(at(axis.times, first)), plural(pairs, "pair"),
      name.empty() ? "; if the table has several series, data.series names the columns that tell them apart"
                   : " of a series"));
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
  const CalendarDay from = calendar_day(time);
  constexpr Index kLastDay = 31;
  return day_in_month(from.month + steps * step.months, step.month_ends ? kLastDay : from.day) +
         (time - std::floor(time));
}

std::string TimeAxis::text(double time) const {
  return form ? write_date(time, *form == DateForm::kTime ? DateForm::kTime : DateForm::kYmd)
              : fmt::format("{}", time);
}

TimeAxis read_time_axis(const RecordSource& table, const DataOptions& data, PeerGroup& peers) {
  const std::string& column = data.table.windows.time;
  const ValidationPart part{.by = ValidationPart::By::kTime,
                            .column = column,
                            .setting = fmt::format("data.time = {}", in_quotes(column))};
  const FoldValues values = read_column(part, data, table, peers);
  TimeAxis axis;
  const std::vector<Index> series = read_series(table, data, peers, axis);
  peers.agree([&] {
    const FoldTimes times = times_of(values, part);
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
    Gaps(axis, data.table.windows.fill, column).find();
  });
  return axis;
}

}  // namespace lockstep
