#include "fold_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/message.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse_two_forms(const ColumnValues& values, const std::string& setting,
                                   std::string_view what, std::string_view first, std::string_view second) {
  throw ConfigError(
      "{}: the values of column {}, such as {}, may have {}: say data.columns = [\"{}: {}\"] or {}", setting,
      in_quotes(values.column.name), in_quotes(values.texts.front()), what, excerpt(values.column.name),
      first, second);
}

// Numbers of eight digits, or of six, are in order of time with the year first only. The form of the dates
// that they are then, as databases write months, days and hours: 202212, 20221231, 2022123123.
std::optional<DateForm> compact_dates(const ColumnValues& values, const std::string& setting) {
  const auto all_are = [&values](DateForm form) {
    return std::ranges::all_of(values.texts, [form](const std::string& text) {
      const auto days = parse_date(text, form);
      return days && *days >= kPlausibleDays.first && *days < kPlausibleDays.second;
    });
  };
  using enum DateForm;
  for (const auto& [last, first] :
       {std::pair{kDmy, kYmd}, std::pair{kMdy, kYmd}, std::pair{kMonthYear, kYearMonth}}) {
    if (all_are(last) && !all_are(first))
      refuse_two_forms(values, setting, "the year last", fmt::format("date({})", to_string(last)), "numeric");
    if (all_are(first)) return first;
  }
  return std::nullopt;
}

// How most of the values are read: as data.columns declares it; else as plain numbers, as numbers of a
// notation, or as dates of a form.
RowColumn form_of_times(const ColumnValues& values, const std::string& setting) {
  TableColumn column = values.column;
  if (column.kind == ColumnKind::kNumeric) return row_column(column, Reading::kEither, 0);
  NotationCounts counts;
  Index numbers = 0;
  for (const std::string& text : values.texts) {
    const auto number = parse_number(text);
    numbers += number ? 1 : 0;
    if (number) {
      counts.add_number(text, *number);
    } else {
      counts.add_text(text);
    }
  }
  const auto fit = counts.best({.separator = values.separator});
  const auto dates = counts.best_date();
  const bool all_numbers = numbers == std::ssize(values.texts);
  if (const auto compact = all_numbers ? compact_dates(values, setting) : std::nullopt) {
    column.date = DateReading{.form = *compact};
  } else if (dates && dates->texts > numbers + (fit ? fit->texts : 0)) {
    if (dates->ambiguous)
      refuse_two_forms(values, setting, "the day or the month first", "date(dmy)", "date(mdy)");
    column.date = DateReading{.form = dates->form};
  } else if (fit && !column.notation) {
    if (fit->ambiguous)
      refuse_two_forms(values, setting, "a comma between thousands or a decimal comma",
                       "number(thousands=comma)", "number(decimal=comma)");
    column.notation = fit->notation;
  }
  return row_column(column, Reading::kEither, 0);
}

FoldTimes read_values(const ColumnValues& values, const std::string& setting) {
  const RowColumn form = form_of_times(values, setting);
  FoldTimes times;
  if (form.date) times.form = form.date->form;
  for (const std::string& text : values.texts) {
    Cell cell;
    const bool missing = std::ranges::count(values.missing, text) > 0;
    if ((missing || !read_value(text, form, cell)) && times.problem.empty()) {
      times.problem =
          fmt::format("{} in record {} (counted from 0) {}", in_quotes(text),
                      with_commas(values.position(std::ssize(times.numbers))),
                      missing     ? "stands for a missing value"
                      : form.date ? fmt::format("is no date as in date({})", to_string(form.date->form))
                                  : "is no number");
    }
    times.numbers.push_back(cell.number);
    times.short_years = times.short_years || (cell.short_year && !form.date->before);
  }
  return times;
}

void expect_one_label(Index labels, const ValidationPart& part) {
  if (labels != 1) throw ConfigError("{} needs one label, found {}", part.setting, labels);
}

[[noreturn]] void refuse_missing_label(const ValidationPart& part) {
  throw ConfigError(part.setting + " needs a label for each record, found none");
}

}  // namespace

RecordsByClass records_by_class(const std::vector<Scalar>& targets, std::uint64_t seed,
                                const ValidationPart& part) {
  RecordsByClass classes;
  const KeyedPermutation order(std::ssize(targets), {.seed = seed, .purpose = Purpose::kFold});
  for (Index position = 0; position < std::ssize(targets); ++position) {
    const Index id = order.inverse(position);
    classes[at(targets, id)].push_back(id);
  }
  constexpr std::size_t kMaxClasses = 1000;
  if (classes.size() > kMaxClasses) {
    ValidationPart instead = part;
    instead.by = ValidationPart::By::kRecord;
    throw ConfigError(
        "{}: the label has {} different values, expected classes, {} at most; {} takes records of any kind",
        part.setting, with_commas(std::ssize(classes)), with_commas(kMaxClasses), to_string(instead));
  }
  return classes;
}

FoldTargets read_targets(const RecordSource& whole, const ValidationPart& part, PeerGroup& peers) {
  std::vector<Scalar> mine;
  peers.agree([&] {
    expect_one_label(whole.info().target_columns, part);
    for_each_record(whole, {}, peers, [&](std::span<const Scalar>, std::span<const Scalar> targets) {
      mine.push_back(targets.front());
      if (std::isnan(mine.back())) refuse_missing_label(part);
    });
  });
  FoldTargets all{.targets = {}, .class_names = whole.info().class_names};
  for (const Bytes& message : peers.all_gather(std::as_bytes(std::span(mine)))) {
    MessageReader reader(message);
    while (!reader.done()) all.targets.push_back(reader.take<Scalar>());
  }
  return all;
}

FoldTargets targets_of(const TableRecords& table, const ValidationPart& part) {
  const std::vector<std::string>& labels = table.options.label;
  expect_one_label(std::ssize(labels), part);
  const auto label = std::ranges::find(table.columns, labels.front(), &TableColumn::name);
  const bool has_classes = label != table.columns.end() && label->kind == ColumnKind::kCategorical;
  ColumnValues values = table.texts.values(labels.front(), part.setting);
  FoldTargets found;
  if (!has_classes) {
    const RowColumn row =
        row_column(label == table.columns.end() ? values.column : *label, Reading::kNumber, 0);
    for (const std::string& text : values.texts) {
      Cell cell;
      if (!read_value(text, row, cell)) refuse_missing_label(part);
      found.targets.push_back(static_cast<Scalar>(cell.number));
    }
    return found;
  }
  const std::vector<std::string> missing = missing_in_categories(values.missing);
  ValueCounts counts(std::numeric_limits<Index>::max());
  for (std::string& text : values.texts) {
    if (std::ranges::count(missing, text) + std::ranges::count(label->missing_values, text) > 0)
      refuse_missing_label(part);
    counts.add(text);
  }
  const std::vector<std::string>& positive = table.options.positive;
  found.class_names = label->values.empty()
                          ? ordered_classes(counts.by_count(), positive.empty() ? "" : positive.front(),
                                            fmt::format("column {}", in_quotes(label->name)))
                          : label->values;
  std::unordered_map<std::string_view, Scalar> numbers;
  for (const std::string& name : found.class_names)
    numbers.emplace(name, static_cast<Scalar>(numbers.size()));
  for (const std::string& text : values.texts) {
    const auto number = numbers.find(text);
    if (number == numbers.end()) refuse_missing_label(part);
    found.targets.push_back(number->second);
  }
  return found;
}

FoldTimes times_of(const ColumnValues& values, const std::string& setting) {
  FoldTimes times = read_values(values, setting);
  if (times.problem.empty()) return times;
  throw ConfigError(
      "{}: {}: column {} is to put the records in order of time, so its values are to be numbers, or dates "
      "of one form, without a gap",
      setting, times.problem, in_quotes(values.column.name));
}

std::vector<double> places_of(const ColumnValues& values, const std::string& setting) {
  FoldTimes times = read_values(values, setting);
  if (times.problem.empty()) return std::move(times.numbers);
  std::map<std::string_view, double> places;
  for (const std::string& text : values.texts) places.emplace(text, 0);
  double next = 0;
  for (auto& [text, place] : places) place = next++;
  std::vector<double> numbers;
  for (const std::string& text : values.texts) numbers.push_back(places.at(text));
  return numbers;
}

}  // namespace lockstep
