#include "lockstep/data/table/schema/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// Different values that are counted: of texts, and of numbers, which seldom are categories.
constexpr Index kMaxTexts = 100'000;
constexpr Index kMaxNumbers = 1000;
// A column whose texts are no larger a share is one of numbers with bad records.
constexpr double kBadNumbers = 0.01;
// So many different texts among numbers stand for missing values, if they are less than half of the values.
constexpr Index kMaxMarkers = 3;
constexpr double kMostlyNumbers = 0.5;
constexpr Index kMaxOneHot = 1000;
constexpr Index kHashBuckets = 1024;
constexpr Index kFewValues = 100;

// The values of a column, by what they can be read as.
struct Values {
  Index all = 0;
  Index numbers = 0;  // plain, or in the notation that reads most
  std::optional<NotationCounts::Fit> fit = {};
  std::vector<ValueCounts::Entry> others = {};  // texts that are no numbers, the most frequent first
  bool many_others = false;

  Index other_count() const { return all - numbers; }
  double share() const { return static_cast<double>(numbers) / static_cast<double>(all); }
};

Values count_values(const ColumnSummary& summary, char separator) {
  Values values{
      .all = summary.present(), .numbers = summary.numbers.count, .fit = summary.notations.best(separator)};
  if (values.fit) values.numbers += values.fit->texts;
  values.many_others = summary.notations.others().overflowed();
  values.others = summary.notations.others().by_count();
  return values;
}

// "'None' (30 times), 'n.b.' (2 times)"
std::string list_counts(const std::vector<ValueCounts::Entry>& entries) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> shown;
  for (const ValueCounts::Entry& entry : std::span(entries).first(std::min(kShown, entries.size()))) {
    shown.push_back(fmt::format("{} ({} time{})", in_quotes(entry.text), with_commas(entry.count),
                                entry.count == 1 ? "" : "s"));
  }
  return fmt::format("{}{}", fmt::join(shown, ", "), entries.size() > kShown ? ", ..." : "");
}

std::string describe_fit(const NotationCounts::Fit& fit) {
  std::string text =
      fmt::format("numbers written with {}, such as {}", fit.notation.describe(), in_quotes(fit.example));
  if (fit.ambiguous) {
    text += fit.notation.decimal == ','
                ? " (or does the comma stand between thousands? Then say number(thousands=comma))"
                : " (or is it a decimal comma? Then say number(decimal=comma))";
  }
  return text;
}

ColumnGuess guess_number(const Values& values, bool markers) {
  ColumnGuess guess{.kind = ColumnKind::kNumeric};
  std::vector<std::string> remarks;
  if (values.fit) {
    guess.notation = values.fit->notation;
    remarks.push_back(describe_fit(*values.fit));
  }
  const Index others = values.other_count();
  if (markers) {
    for (const ValueCounts::Entry& entry : values.others) guess.missing_values.push_back(entry.text);
    remarks.push_back(
        fmt::format("{:.3g} % of the values are numbers, and {} stand{} for a missing one: name {} in "
                    "data.missing_values, or the column in data.categorical",
                    100 * values.share(), list_counts(values.others), values.others.size() == 1 ? "s" : "",
                    values.others.size() == 1 ? "it" : "them"));
  } else if (others > 0) {
    remarks.push_back(
        fmt::format("{} value{} no number{}{}: with it as numeric, those records are bad",
                    with_commas(others), others == 1 ? " is" : "s are", others == 1 ? "" : "s",
                    values.others.empty() ? "" : ", such as " + in_quotes(values.others.front().text)));
  }
  guess.remark = fmt::format("{}", fmt::join(remarks, "; "));
  guess.doubtful = !remarks.empty();
  return guess;
}

ColumnGuess guess_category(const ColumnSummary& summary, Index values) {
  const bool countless = summary.countless();
  const Index distinct = summary.distinct();
  if (countless || (distinct > kFewValues && distinct > values / 2)) {
    return {.kind = ColumnKind::kIgnored,
            .remark = fmt::format("{} different texts, hardly one of them twice: an id or free text?",
                                  countless ? "very many" : with_commas(distinct))};
  }
  if (distinct > kMaxOneHot) {
    return {.kind = ColumnKind::kCategorical,
            .hash = kHashBuckets,
            .remark = fmt::format("{} categories: best hashed, or embedded (index)", with_commas(distinct))};
  }
  return {.kind = ColumnKind::kCategorical};
}

// Digits that name something: they lose what tells them apart when they become numbers.
ColumnGuess guess_code(const ColumnSummary& summary, const std::string& reason) {
  const Index values = summary.present();
  ColumnGuess guess = guess_category(summary, values);
  if (guess.kind == ColumnKind::kIgnored && summary.number_counts.overflowed()) {
    guess = {.kind = ColumnKind::kCategorical, .hash = kHashBuckets};
  }
  guess.remark =
      fmt::format("{}: {}; data.numeric makes numbers of them", reason,
                  guess.kind == ColumnKind::kIgnored ? "an id?" : "taken as codes, each a category");
  guess.doubtful = true;
  return guess;
}

// Dates, if all but a few of the values are of one form.
std::optional<ColumnGuess> guess_date(const ColumnSummary& summary, Index values, bool label) {
  const auto fit = summary.notations.best_date();
  const bool all_but_few =
      fit && static_cast<double>(values - fit->texts) <= kBadNumbers * static_cast<double>(values);
  if (label || !all_but_few) return std::nullopt;
  const std::string example = in_quotes(fit->example);
  if (fit->ambiguous) {
    return ColumnGuess{
        .kind = ColumnKind::kIgnored,
        .remark = fmt::format("dates, such as {}, of which all days may be months: say date(dmy) or "
                              "date(mdy) in data.columns",
                              example),
        .doubtful = true};
  }
  const DateReading date{.form = fit->form, .parts = usual_parts(fit->form, fit->times > 0)};
  ColumnGuess guess{.kind = ColumnKind::kNumeric, .date = date};
  guess.remark = fmt::format("{}, such as {}, read as {}",
                             fit->form == DateForm::kTime ? "times of day" : "dates", example, date.term());
  return guess;
}

bool holds_codes(const ColumnSummary& summary) {
  return summary.notations.leading_zeros() > 0 && !summary.notations.has_points();
}

ColumnGuess guess_kind(const ColumnSummary& summary, bool label, char separator) {
  const Values values = count_values(summary, separator);
  const bool few_others =
      static_cast<double>(values.other_count()) <= kBadNumbers * static_cast<double>(values.all);
  if (!label && few_others && holds_codes(summary)) {
    return guess_code(summary, fmt::format("numbers with zeros before them, such as {}",
                                           in_quotes(summary.notations.leading_zero_example())));
  }
  if (!label && few_others && summary.notations.beyond_double() > 0) {
    return guess_code(summary, "whole numbers of so many digits that the last ones are lost in a number");
  }
  if (const auto dates = guess_date(summary, values.all, label)) return *dates;
  const bool mostly = values.share() >= kMostlyNumbers;
  const bool markers =
      !few_others && mostly && !values.many_others && std::ssize(values.others) <= kMaxMarkers;
  if (few_others || markers) return guess_number(values, markers);
  ColumnGuess guess = guess_category(summary, values.all);
  guess.doubtful = mostly;
  if (mostly) {
    guess.remark = fmt::format(
        "{:.3g} % of the values are numbers, but not others, such as {}: {}; name those that stand for a "
        "missing value in data.missing_values, or the column in data.numeric or data.categorical",
        100 * values.share(),
        values.others.empty() ? in_quotes(summary.notations.other_example()) : list_counts(values.others),
        guess.kind == ColumnKind::kIgnored ? "it is left out" : "each value is taken as a category");
  }
  return guess;
}

}  // namespace

Scan look_at_columns(const TableText& table, const std::vector<TableColumn>& columns, bool all,
                     const std::vector<std::string>& missing, PeerGroup& peers) {
  std::vector<RowColumn> rows;
  std::vector<ColumnWants> wants;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool looks = all || columns[i].kind == ColumnKind::kUnknown;
    rows.push_back(row_column(columns[i], looks ? Reading::kEither : Reading::kSkip, i));
    wants.push_back(
        {.max_texts = looks ? kMaxTexts : 0, .max_numbers = looks ? kMaxNumbers : 0, .notations = looks});
  }
  return scan_table({.table = table,
                     .columns = rows,
                     .wants = wants,
                     .missing = missing,
                     .bad = {.action = OnBadRecord::kSkip}},
                    peers);
}

ColumnGuess guess_column(const ColumnSummary& summary, bool label, char separator) {
  const Index values = summary.present();
  if (values == 0) return {.kind = ColumnKind::kIgnored, .remark = "it has no values at all"};
  const bool constant = !summary.countless() && summary.distinct() == 1;
  ColumnGuess guess = guess_kind(summary, label, separator);
  if (constant && (label || summary.missing == 0)) {
    guess.doubtful = false;
    guess.remark = label ? "it is constant: there is nothing to learn" : "it is constant";
    if (!label) guess.kind = ColumnKind::kIgnored;
  }
  if (label && guess.kind == ColumnKind::kIgnored) guess.kind = ColumnKind::kCategorical;
  return guess;
}

void take_guess(TableColumn& column, const ColumnGuess& guess) {
  column.kind = guess.kind;
  if (guess.hash > 0 && !column.label && column.encoding == Encoding::kOneHot) {
    column.encoding = Encoding::kHash;
    column.buckets = guess.hash;
  }
  if (guess.kind != ColumnKind::kNumeric) return;
  if (guess.notation) column.notation = guess.notation;
  column.date = guess.date;
  for (const std::string& text : guess.missing_values) column.missing_values.push_back(text);
}

Remarks infer_kinds(const TableText& table, std::vector<TableColumn>& columns,
                    const std::vector<std::string>& missing, PeerGroup& peers) {
  Remarks remarks;
  const auto unknown = [](const TableColumn& column) { return column.kind == ColumnKind::kUnknown; };
  if (std::ranges::none_of(columns, unknown)) return remarks;
  const Scan scan = look_at_columns(table, columns, false, missing, peers);
  if (scan.good == 0 && scan.bad > 0) {
    peers.agree([&] {
      throw DataError(fmt::format("'{}' holds no records but {} bad ones; the first: {}",
                                  table.text.files.front().path, with_commas(scan.bad),
                                  scan.rejects.front()));
    });
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    TableColumn& column = columns[i];
    if (!unknown(column)) continue;
    const ColumnGuess guess = guess_column(scan.columns[i], column.label, table.text.dialect.separator);
    take_guess(column, guess);
    if (guess.remark.empty()) continue;
    (guess.doubtful ? remarks.doubts : remarks.notes)
        .push_back(fmt::format("column {}{}: {}", in_quotes(column.name),
                               guess.kind == ColumnKind::kIgnored ? " is ignored" : "", guess.remark));
  }
  return remarks;
}

}  // namespace lockstep
