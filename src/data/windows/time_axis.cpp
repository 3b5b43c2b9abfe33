#include "time_axis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "data/parts/fold_values.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr double kSecondsOfDay = 86'400;

// Calls use(i) for each position that has one of its series before it.
template <class Use>
void for_each_step(const TimeAxis& axis, const Use& use) {
  for (Index series = 0; series < axis.series_count(); ++series) {
    const Range positions = axis.positions_of(series);
    for (Index i = positions.begin + 1; i < positions.end; ++i) use(i);
  }
}

// A column may have several zones, as those of summer and winter time: its days are even on the local clock,
// and its hours in UTC.
class Clocks {
 public:
  // `zones`: of each position, in days. `steps`: known patterns.
  Clocks(TimeAxis& axis, const std::vector<double>& zones, const std::vector<std::string>& steps)
      : axis_(axis) {
    for (const std::string& term : steps) known_.emplace_back(term);
    std::vector<double> local = axis.times;
    for (std::size_t i = 0; i < local.size(); ++i) local[i] += zones[i];
    const bool one_zone = std::ranges::adjacent_find(zones, std::not_equal_to<>()) == zones.end();
    const double fit = one_zone ? 0 : find_grids(local);
    axis.local = one_zone || fit >= find_grids(axis.times);
    if (!axis.local) return;
    axis.times = std::move(local);
    find_grids(axis.times);
  }

 private:
  // The share of times between the first and the last of their series that are there, summed.
  double find_grids(const std::vector<double>& times) {
    axis_.grids.clear();
    std::map<std::string, Index> counts;
    Index most = 0;
    double there = 0;
    for (Index series = 0; series < axis_.series_count(); ++series) {
      const Range range = axis_.positions_of(series);
      const TimeGrid& grid = axis_.grids.emplace_back(find_grid(std::span(times).subspan(
          static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()))));
      there += grid.holds() ? grid.coverage() * static_cast<double>(range.size()) : 0;
      Index& count = counts[grid.describe()];
      count += grid.holds() ? range.size() : 0;
      if (count >= most) axis_.grid = grid;
      most = std::max(most, count);
    }
    return there;
  }

  // The known pattern of which these times have most, if they are of one at all.
  TimeGrid find_grid(std::span<const double> times) {
    std::optional<TimeGrid> best;
    for (TimeGrid& grid : known_) {
      grid.measure(times);
      const bool is_one = grid.holds() || times.size() < 2;
      if (is_one && (!best || grid.coverage() > best->coverage())) best = grid;
    }
    return best ? *best : TimeGrid(times, axis_.form.has_value());
  }

  TimeAxis& axis_;
  std::vector<TimeGrid> known_;
};

// Series whose times are of another pattern than all those of training.
void compare_with_training(TimeAxis& axis, const std::vector<std::string>& steps) {
  if (steps.empty()) return;
  Index others = 0;
  Index first = 0;
  for (Index series = 0; series < axis.series_count(); ++series) {
    if (std::ranges::count(steps, at(axis.grids, series).term()) == 0 && others++ == 0) first = series;
  }
  if (others == 0) return;
  std::vector<std::string> known;
  for (const std::string& term : steps) known.push_back(TimeGrid(term).describe());
  const std::string name = axis.series_name(first);
  axis.notes.push_back(
      {.text = fmt::format("the step from one time to the next is {}{}{}, in training {}: the model takes "
                           "one position for the other",
                           at(axis.grids, first).describe(), name.empty() ? "" : " in series " + name,
                           others > 1 ? fmt::format(" and {} others", others - 1) : "", listed(known))});
}

// Steps that are longer than the usual one, or no multiple of it, and puts positions where times are missing.
class Gaps {
 public:
  Gaps(TimeAxis& axis, FillGaps fill, const RecordSource& table, const std::string& column)
      : axis_(axis), fill_(fill), table_(table), column_(column) {}

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
    const Index series = axis_.series_of(i);
    const TimeGrid& grid = at(axis_.grids, series);
    const std::optional<Index> steps = grid.steps(before, at(axis_.times, i));
    if (steps == 1) return;
    std::string& first = steps ? first_gap_ : first_irregular_;
    ++(steps ? gaps_ : irregular_);
    missing_ += steps ? *steps - 1 : 0;
    if (fill_ != FillGaps::kNone && missing_ > kMaxFilled * axis_.positions() + kAlways)
      throw DataError(
          "'{}', column {}: {} in record {} (counted from 0) comes {} behind the one before, {}: so many are "
          "not filled "
          "(data.fill_gaps); is it right?",
          table_.info().name, in_quotes(column_), axis_.text(at(axis_.times, i), series),
          with_commas(table_.position(at(axis_.records, i))), plural(steps.value_or(0), "step"),
          axis_.text(before, series));
    if (first.empty()) {
      const std::string name = axis_.series_name(series);
      first = fmt::format("{} to {}{}", axis_.text(before, series), axis_.text(at(axis_.times, i), series),
                          name.empty() ? "" : " of " + name);
    }
    for (Index step = 1; fill_ != FillGaps::kNone && steps && step < *steps; ++step)
      append(filled, i - 1, grid.after(before, step), true);
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

  // So many positions may be filled for each that is there, and so many at least.
  static constexpr Index kMaxFilled = 10;
  static constexpr Index kAlways = 10'000;

  TimeAxis& axis_;
  FillGaps fill_;
  const RecordSource& table_;
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

// How each series writes its times; and the zone of each position, in days.
std::vector<double> learn_layouts(const ColumnValues& values, TimeAxis& axis) {
  constexpr Index kSeen = 400;  // more than a year of days, so that dates with one digit are among them
  const Index before =
      values.column.date ? values.column.date->before.value_or(kShortYearsBefore) : kShortYearsBefore;
  std::vector<double> zones(static_cast<std::size_t>(axis.positions()));
  Index without = 0;
  for (Index series = 0; series < axis.series_count(); ++series) {
    TimeLayout& layout = axis.layouts.emplace_back(axis.form, before);
    const Range positions = axis.positions_of(series);
    const auto text = [&](Index p) -> const std::string& { return at(values.texts, at(axis.records, p)); };
    for (Index p = std::max(positions.begin, positions.end - kSeen); p < positions.end; ++p)
      layout.add(text(p));
    if (!layout.has_zone()) continue;
    for (Index p = positions.begin; p < positions.end; ++p) {
      const std::optional<double> zone = read_date(text(p), *axis.form, before)->zone;
      at(zones, p) = zone.value_or(0) / kSecondsOfDay;
      without += zone ? 0 : 1;
    }
  }
  if (without > 0)
    axis.notes.push_back({.text = fmt::format("{} of column {} {} no zone, unlike others: taken as UTC",
                                              plural(without, "time"), in_quotes(values.column.name),
                                              without == 1 ? "names" : "name")});
  return zones;
}

void refuse_one_time(const TimeAxis& axis, const RecordSource& table, const std::string& column) {
  Index pairs = 0;
  Index first = 0;
  for_each_step(axis, [&](Index i) {
    if (at(axis.times, i) == at(axis.times, i - 1) && pairs++ == 0) first = i;
  });
  if (pairs == 0) return;
  if (at(axis.layouts, axis.series_of(first)).may_repeat_an_hour(at(axis.times, first)))
    throw DataError(
        "'{}', column {}: {} comes twice, in records {} and {} (counted from 0), as an hour of a local clock "
        "does "
        "when summer time ends: write its times in UTC, or with their zone (+01:00)",
        table.info().name, in_quotes(column), axis.text(at(axis.times, first), axis.series_of(first)),
        with_commas(table.position(at(axis.records, first - 1))),
        with_commas(table.position(at(axis.records, first))));
  const std::string name = axis.series_name(axis.series_of(first));
  throw DataError(
      "'{}', column {}: records {} and {} (counted from 0){} have the same time, {}, and so have {} in all: "
      "expected one record for each time{}",
      table.info().name, in_quotes(column), with_commas(table.position(at(axis.records, first - 1))),
      with_commas(table.position(at(axis.records, first))), name.empty() ? "" : ", of " + name + ",",
      axis.text(at(axis.times, first), axis.series_of(first)), plural(pairs, "pair"),
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

std::vector<std::string> TimeAxis::steps() const {
  constexpr std::size_t kMax = 20;
  std::vector<std::string> terms;
  for (const TimeGrid& each : grids) {
    const std::string term = each.term();
    if (each.holds() && terms.size() < kMax && std::ranges::count(terms, term) == 0) terms.push_back(term);
  }
  return terms;
}

std::string TimeAxis::text(double time, Index number) const {
  const TimeLayout& layout = at(layouts, number);
  return layout.write(local ? time : time + layout.zone());
}

TimeAxis read_time_axis(const RecordSource& table, const WindowOptions& windows,
                        const std::vector<std::string>& steps, ColumnTexts& texts, PeerGroup& peers) {
  const std::string& column = windows.time;
  const std::string setting = setting_of("data.time", column);
  TimeAxis axis;
  peers.agree([&] {
    const ColumnValues values = texts.values(column, setting);
    const FoldTimes times = times_of(values, setting);
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
    const std::vector<double> zones = learn_layouts(values, axis);
    refuse_one_time(axis, table, column);
    const Clocks clocks(axis, zones, steps);
    compare_with_training(axis, steps);
    Gaps(axis, windows.fill, table, column).find();
  });
  return axis;
}

}  // namespace lockstep
