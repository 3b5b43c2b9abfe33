#include "fold_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/load_records.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/values/message.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {
namespace {

void refuse_empty(const FoldValues& values, const ValidationPart& part) {
  const auto empty = std::ranges::find(values.texts, std::string());
  if (empty == values.texts.end()) return;
  throw ConfigError("{}: column {} is empty in record {} (counted from 0), expected a value in each",
                    part.setting, in_quotes(part.column),
                    with_commas(values.source->position(empty - values.texts.begin())));
}

[[noreturn]] void refuse_two_forms(const FoldValues& values, const ValidationPart& part,
                                   std::string_view what, std::string_view first, std::string_view second) {
  throw ConfigError(
      "{}: the values of column {}, such as {}, may have {}: say data.columns = [\"{}: {}\"] or {}",
      part.setting, in_quotes(part.column), in_quotes(values.texts.front()), what, excerpt(part.column),
      first, second);
}

// Numbers of eight digits, or of six, are in order of time with the year first only.
void refuse_compact_dates(const FoldValues& values, const ValidationPart& part) {
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
      refuse_two_forms(values, part, "the year last", fmt::format("date({})", to_string(last)), "numeric");
  }
}

// How most of the values are read: as data.columns declares it; else as plain numbers, as numbers of a
// notation, or as dates of a form.
RowColumn form_of_times(const FoldValues& values, const ValidationPart& part) {
  TableColumn column = values.column;
  if (column.kind == ColumnKind::kNumeric) return row_column(column, Reading::kEither, 0);
  NotationCounts counts;
  Index numbers = 0;
  for (const std::string& text : values.texts) {
    const auto number = parse_number(text);
    numbers += number ? 1 : 0;
    number ? counts.add_number(text, *number) : counts.add_text(text);
  }
  const auto fit = counts.best(values.separator);
  const auto dates = counts.best_date();
  if (numbers == std::ssize(values.texts)) refuse_compact_dates(values, part);
  if (dates && dates->texts > numbers + (fit ? fit->texts : 0)) {
    if (dates->ambiguous)
      refuse_two_forms(values, part, "the day or the month first", "date(dmy)", "date(mdy)");
    column.date = DateReading{.form = dates->form};
  } else if (fit && !column.notation) {
    if (fit->ambiguous)
      refuse_two_forms(values, part, "a comma between thousands or a decimal comma",
                       "number(thousands=comma)", "number(decimal=comma)");
    column.notation = fit->notation;
  }
  return row_column(column, Reading::kEither, 0);
}

FoldTimes read_values(const FoldValues& values, const ValidationPart& part) {
  const RowColumn form = form_of_times(values, part);
  FoldTimes times;
  if (form.date) times.form = form.date->form;
  for (const std::string& text : values.texts) {
    Cell cell;
    const bool missing = std::ranges::count(values.missing, text) > 0;
    if ((missing || !read_value(text, form, cell)) && times.problem.empty()) {
      times.problem =
          fmt::format("{} in record {} (counted from 0) {}", in_quotes(text),
                      with_commas(values.source->position(std::ssize(times.numbers))),
                      missing     ? "stands for a missing value"
                      : form.date ? fmt::format("is no date as in date({})", to_string(form.date->form))
                                  : "is no number");
    }
    times.numbers.push_back(cell.number);
    times.short_years = times.short_years || (cell.short_year && !form.date->before);
  }
  return times;
}

// The records that the source left out are in the file, but have no number.
std::vector<std::string> without_skipped(const std::vector<Bytes>& messages, std::span<const Index> skipped) {
  std::vector<std::string> all;
  auto next = skipped.begin();
  Index position = 0;
  for (const Bytes& message : messages) {
    for (MessageReader reader(message); !reader.done(); ++position) {
      std::string text = reader.take_text();
      if (next != skipped.end() && *next == position) {
        ++next;
      } else {
        all.push_back(std::move(text));
      }
    }
  }
  return all;
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

std::vector<Scalar> read_targets(const RecordSource& whole, const ValidationPart& part, PeerGroup& peers) {
  std::vector<Scalar> mine;
  peers.agree([&] {
    const Index columns = whole.info().target_columns;
    if (columns != 1) throw ConfigError("{} needs one label, found {}", part.setting, columns);
    for_each_record(whole, {}, peers, [&](std::span<const Scalar>, std::span<const Scalar> targets) {
      mine.push_back(targets.front());
      if (std::isnan(mine.back()))
        throw ConfigError(part.setting + " needs a label for each record, found none");
    });
  });
  std::vector<Scalar> all;
  for (const Bytes& message : peers.all_gather(std::as_bytes(std::span(mine)))) {
    MessageReader reader(message);
    while (!reader.done()) all.push_back(reader.take<Scalar>());
  }
  return all;
}

FoldValues read_column(const ValidationPart& part, const DataOptions& data, const RecordSource& whole,
                       PeerGroup& peers) {
  peers.agree([&] {
    if (data.format == "csv") return;
    throw ConfigError(
        "{} reads a column of a table (csv), and the data have the format '{}': they can be divided by "
        "record or by class (stratified)",
        part.setting, data.format);
  });
  const TableText table = open_table_text(whole.files(), data.table, peers);
  FoldValues values{
      .missing = data.table.missing_values, .source = &whole, .separator = table.text.dialect.separator};
  MessageWriter mine;
  peers.agree([&] {
    const auto name = std::ranges::find(table.names, part.column);
    if (name == table.names.end()) {
      throw ConfigError("{}: there is no column {} in '{}'{}", part.setting, in_quotes(part.column),
                        whole.info().name, suggestion(part.column, table.names));
    }
    const Index position = name - table.names.begin();
    const std::vector<TableColumn> declared = declare_columns(data.table, table.names);
    values.column = at(declared, position);
    std::vector<RowColumn> columns(table.names.size());
    at(columns, position) = {.reading = Reading::kText};
    const std::vector<std::string> no_missing;
    TableReader reader(table, columns, 1, no_missing);
    const Range share = at(share_text_chunks(table.text, peers.size()), peers.rank());
    for (Index i = share.begin; i < share.end; ++i) {
      reader.for_each_record(
          at(table.text.chunks, i), [&](std::span<const Cell> cells) { mine.put_text(cells[0].text); },
          [&](const std::string&) { mine.put_text(""); });  // it is among those that were left out
    }
  });
  values.texts = without_skipped(peers.all_gather(mine.bytes()), whole.skipped());
  peers.agree([&] {
    error_if<DataError>(std::ssize(values.texts) != whole.info().rows, "'{}' changed while it was read",
                        whole.info().name);
    refuse_empty(values, part);
  });
  return values;
}

FoldTimes times_of(const FoldValues& values, const ValidationPart& part) {
  FoldTimes times = read_values(values, part);
  if (times.problem.empty()) return times;
  throw ConfigError(
      "{}: {}: column {} is to put the records in order of time, so its values are to be numbers, or dates "
      "of one form, without a gap",
      part.setting, times.problem, in_quotes(part.column));
}

std::vector<double> places_of(const FoldValues& values, const ValidationPart& part) {
  FoldTimes times = read_values(values, part);
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
