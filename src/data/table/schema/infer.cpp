#include "lockstep/data/table/schema/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string_view>

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
  const char* noun = "number";
  Index all = 0;
  Index read = 0;  // numbers, plain or in the notation that reads most; or dates of one form
  std::optional<NotationCounts::Fit> fit = {};
  std::vector<ValueCounts::Entry> others = {};  // texts that are not read, the most frequent first
  bool many_others = false;
  std::string example = {};  // one of them

  Index other_count() const { return all - read; }
  double share() const { return static_cast<double>(read) / static_cast<double>(all); }
  bool few_others() const {
    return static_cast<double>(other_count()) <= kBadNumbers * static_cast<double>(all);
  }
  // The others are some texts that stand for a missing value.
  bool markers() const {
    return !few_others() && share() >= kMostlyNumbers && !many_others && std::ssize(others) <= kMaxMarkers;
  }
};

Values count_values(const ColumnSummary& summary, const FileSigns& file) {
  Values values{.all = summary.present(), .read = summary.numbers.count, .fit = summary.notations.best(file)};
  if (values.fit) values.read += values.fit->texts;
  values.many_others = summary.notations.others().overflowed();
  values.others = summary.notations.others().by_count();
  values.example = summary.notations.other_example();
  return values;
}

// Plain numbers are no dates.
Values count_dates(const ColumnSummary& summary, Index dates) {
  Values values{.noun = "date", .all = summary.present(), .read = dates};
  values.many_others = summary.notations.no_dates().overflowed() || summary.number_counts.overflowed();
  values.others = summary.notations.no_dates().by_count();
  for (const ValueCounts::Entry& number : summary.number_counts.by_count()) values.others.push_back(number);
  std::ranges::stable_sort(values.others, std::greater<>(), &ValueCounts::Entry::count);
  if (!values.others.empty() || !values.many_others) return values;
  const std::vector<ValueCounts::Entry> all = summary.values();
  const auto other = std::ranges::find_if(all, [](const ValueCounts::Entry& entry) {
    return std::ranges::none_of(possible_forms(entry.text),
                                [&entry](DateForm form) { return parse_date(entry.text, form).has_value(); });
  });
  if (other != all.end()) values.example = other->text;
  return values;
}

// "'None' (30 times), 'n.b.' (2 times)"
std::string list_counts(const std::vector<ValueCounts::Entry>& entries) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> shown;
  for (const ValueCounts::Entry& entry : std::span(entries).first(std::min(kShown, entries.size()))) {
    shown.push_back(fmt::format("{} ({})", in_quotes(entry.text), plural(entry.count, "time")));
  }
  return fmt::format("{}{}", fmt::join(shown, ", "), entries.size() > kShown ? ", ..." : "");
}

std::string describe_fit(const NotationCounts::Fit& fit) {
  std::string text =
      fmt::format("numbers written with {}, such as {}", fit.describe(), in_quotes(fit.example));
  if (!fit.ambiguous) return text;
  const char sign = fit.notation.decimal == ',' && fit.notation.thousands == '.' ? '.' : ',';
  const char* const name = sign == '.' ? "point" : "comma";
  const bool grouped = fit.notation.thousands == sign;
  text += fmt::format(" (or {} the {}{}? Then say number({}={}))", grouped ? "is" : "does", name,
                      grouped ? " a decimal one" : " stand between thousands",
                      grouped ? "decimal" : "thousands", name);
  return text;
}

// The texts among numbers or dates: missing values, if they are markers, else bad ones.
void take_others(ColumnGuess& guess, const Values& values, std::vector<std::string>& remarks) {
  const Index others = values.other_count();
  if (values.markers()) {
    for (const ValueCounts::Entry& entry : values.others) guess.missing_values.push_back(entry.text);
    remarks.push_back(
        fmt::format("{:.3g} % of the values are {}s, and {} stand{} for a missing one: name {} in "
                    "data.missing_values, or the column in data.categorical",
                    100 * values.share(), values.noun, list_counts(values.others),
                    values.others.size() == 1 ? "s" : "", values.others.size() == 1 ? "it" : "them"));
  } else if (others > 0) {
    remarks.push_back(
        fmt::format("{} {} no {}{}{}: with it as {}, those records are bad", plural(others, "value"),
                    others == 1 ? "is" : "are", values.noun, others == 1 ? "" : "s",
                    values.others.empty() ? "" : ", such as " + in_quotes(values.others.front().text),
                    guess.date ? "dates" : "numeric"));
  }
  guess.doubtful = others > 0;
}

// Numbers in two currencies or units, or percent beside fractions: which of them are meant?
std::string find_mixture(const ColumnSummary& summary, const Values& values) {
  const NumberStats& plain = summary.numbers;
  if (!values.fit || static_cast<double>(plain.count + values.fit->of_any_kind) <
                         (1 - kBadNumbers) * static_cast<double>(values.all))
    return "";
  std::vector<std::string> kinds = values.fit->mixed;
  const bool of_percent = values.fit->notation.suffix == "%" && plain.count > 0;
  if (of_percent && plain.min >= -1 && plain.max <= 1 && plain.min < plain.max)
    kinds = {values.fit->example, fmt::format("{:g}", plain.max)};
  if (kinds.size() < 2) return "";
  return fmt::format(
      "{} and {} are numbers of two kinds: make them one in the file, or say {} to read those "
      "alone, or categorical",
      in_quotes(kinds[0]), in_quotes(kinds[1]), values.fit->notation.term());
}

ColumnGuess guess_number(const Values& values) {
  ColumnGuess guess{.kind = ColumnKind::kNumeric};
  std::vector<std::string> remarks;
  if (values.fit) {
    guess.notation = values.fit->notation;
    remarks.push_back(describe_fit(*values.fit));
  }
  take_others(guess, values, remarks);
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

// Numbers or dates for the most part, and many texts beside them.
ColumnGuess guess_mixture(const ColumnSummary& summary, const Values& values) {
  ColumnGuess guess = guess_category(summary, values.all);
  const bool dates = values.noun == std::string_view("date");
  guess.doubtful = true;
  guess.remark = fmt::format(
      "{:.3g} % of the values are {}s, but not others, such as {}: {}; name those that stand for a "
      "missing value in data.missing_values, or the column in {} or data.categorical",
      100 * values.share(), values.noun,
      values.others.empty() ? in_quotes(values.example) : list_counts(values.others),
      guess.kind == ColumnKind::kIgnored ? "it is left out" : "each value is taken as a category",
      dates ? "data.columns" : "data.numeric");
  return guess;
}

// Dates, if most of the values are of one form, and none is a date of another.
std::optional<ColumnGuess> guess_date(const ColumnSummary& summary, bool label) {
  const auto fit = summary.notations.best_date();
  if (label || !fit ||
      static_cast<double>(fit->texts) < kMostlyNumbers * static_cast<double>(summary.present()))
    return std::nullopt;
  const Values values = count_dates(summary, fit->texts);
  const std::string example = in_quotes(fit->example);
  ColumnGuess guess{.kind = ColumnKind::kIgnored, .doubtful = true};
  if (fit->other) {
    guess.remark = fmt::format(
        "dates of more than one form, such as {} in that of date({}) and {} in that of date({}): write them "
        "in one",
        example, to_string(fit->form), in_quotes(fit->other_example), to_string(*fit->other));
    return guess;
  }
  if (!values.few_others() && !values.markers()) return guess_mixture(summary, values);
  if (fit->ambiguous) {
    guess.remark = fmt::format(
        "dates, such as {}, of which all days may be months: say date(dmy) or date(mdy) in data.columns",
        example);
    return guess;
  }
  guess = {.kind = ColumnKind::kNumeric,
           .date = DateReading{.form = fit->form, .parts = usual_parts(fit->form, fit->times > 0)}};
  std::vector<std::string> remarks{fmt::format("{}, such as {}, read as {}",
                                               fit->form == DateForm::kTime ? "times of day" : "dates",
                                               example, guess.date->term())};
  take_others(guess, values, remarks);
  guess.remark = fmt::format("{}", fmt::join(remarks, "; "));
  return guess;
}

ColumnGuess guess_kind(const ColumnSummary& summary, bool label, const FileSigns& file) {
  const Values values = count_values(summary, file);
  const bool few_others = values.few_others();
  const bool codes = summary.notations.leading_zeros() > 0 && !summary.notations.has_points();
  if (!label && few_others && codes) {
    return guess_code(summary, fmt::format("numbers with zeros before them, such as {}",
                                           in_quotes(summary.notations.leading_zero_example())));
  }
  if (!label && few_others && summary.notations.are_exponents())
    return guess_code(summary, "digits with an E among them in all values");
  if (!label && few_others && summary.notations.beyond_double() > 0) {
    return guess_code(summary, "whole numbers of so many digits that the last ones are lost in a number");
  }
  if (const auto dates = guess_date(summary, label)) return *dates;
  if (const std::string mixture = find_mixture(summary, values); !mixture.empty())
    return {.kind = ColumnKind::kCategorical, .remark = mixture, .doubtful = true, .mixture = mixture};
  if (few_others || values.markers()) return guess_number(values);
  return values.share() >= kMostlyNumbers ? guess_mixture(summary, values)
                                          : guess_category(summary, values.all);
}

}  // namespace

Scan look_at_columns(TableText& table, const std::vector<TableColumn>& columns, bool all,
                     const std::vector<std::string>& missing, PeerGroup& peers,
                     const std::vector<Index>& texts) {
  std::vector<RowColumn> rows;
  std::vector<ColumnWants> wants;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool looks = all || columns[i].kind == ColumnKind::kUnknown;
    const bool keeps = std::ranges::count(texts, static_cast<Index>(i)) > 0;
    rows.push_back(looks   ? row_column(columns[i], Reading::kEither, i)
                   : keeps ? RowColumn{.reading = Reading::kText, .cell = static_cast<Index>(i)}
                           : RowColumn{.cell = static_cast<Index>(i)});
    wants.push_back(
        {.max_texts = looks ? kMaxTexts : 0, .max_numbers = looks ? kMaxNumbers : 0, .notations = looks});
  }
  return scan_table({.table = table,
                     .columns = rows,
                     .wants = wants,
                     .missing = missing,
                     .bad = {.action = OnBadRecord::kSkip},
                     .texts = texts},
                    peers);
}

FileSigns signs_of(const Scan& scan, std::span<const TableColumn> columns, char separator) {
  FileSigns file{.separator = separator};
  for (std::size_t i = 0; i < scan.columns.size(); ++i) {
    const NotationCounts& counts = scan.columns[i].notations;
    const bool declared = columns[i].notation && columns[i].notation->decimal == ',';
    file.decimal_comma = file.decimal_comma || declared || counts.has_decimals(',');
    file.decimal_point = file.decimal_point || counts.has_decimals('.');
  }
  return file;
}

namespace {

// A letter and the mark on it in two characters, or a letter with its mark in one: of Latin scripts.
bool has_combined(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    const auto second = static_cast<unsigned char>(text[i + 1]);
    if (first == 0xCC || (first == 0xCD && second < 0xB0)) return true;  // U+0300 to U+036F
  }
  return false;
}
bool has_composed(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return c >= '\xC3' && c <= '\xC5'; });  // U+00C0 to U+017F
}

// Values of which some are not what they are read as; "" if there are none.
std::string doubt_values(const ColumnGuess& guess, const ColumnSummary& summary) {
  constexpr Index kFewNumbers = 100;
  const auto [min, max] = std::pair(summary.numbers.min, summary.numbers.max);
  const bool is_number = guess.kind == ColumnKind::kNumeric && !guess.date;
  if (is_number && min > 3e8 && min < 5e9 && max > 3e11 && max < 5e12)
    return fmt::format("from {:.0f} to {:.0f}: are these seconds and milliseconds in one column?", min, max);
  if (is_number && summary.number_counts.distinct() <= kFewNumbers) {
    std::map<std::string, std::string> written;  // by the text without zeros at its end
    for (const ValueCounts::Entry& entry : summary.number_counts.by_count()) {
      if (entry.text.find('.') == std::string::npos) continue;
      const std::string other =
          written.try_emplace(entry.text.substr(0, entry.text.find_last_not_of('0') + 1), entry.text)
              .first->second;
      if (other == entry.text) continue;
      return fmt::format(
          "{} and {} are one number; if they are versions or codes, name it in data.categorical", other,
          entry.text);
    }
  }
  if (guess.kind == ColumnKind::kCategorical) {
    const std::vector<ValueCounts::Entry> values = summary.text_counts.by_count();
    const auto combined = std::ranges::find_if(values, has_combined, &ValueCounts::Entry::text);
    if (combined != values.end() && std::ranges::any_of(values, has_composed, &ValueCounts::Entry::text))
      return fmt::format(
          "{} has a letter and its mark as two characters, where others have one: texts that look alike are "
          "different values; write them alike (normal form NFC)",
          in_quotes(combined->text));
  }
  return "";
}

}  // namespace

ColumnGuess guess_column(const ColumnSummary& summary, bool label, const FileSigns& file) {
  const Index values = summary.present();
  if (values == 0) return {.kind = ColumnKind::kIgnored, .remark = "it has no values at all"};
  const bool constant = !summary.countless() && summary.distinct() == 1;
  ColumnGuess guess = guess_kind(summary, label, file);
  if (constant && (label || summary.missing == 0)) {
    guess.doubtful = false;
    guess.remark = label ? "it is constant: there is nothing to learn" : "it is constant";
    if (!label) guess.kind = ColumnKind::kIgnored;
  }
  if (const std::string doubt = doubt_values(guess, summary); !doubt.empty()) {
    guess.doubtful = true;
    guess.remark = doubt;
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

YearsRemark remark_on_years(const TableColumn& column, const ColumnSummary& summary) {
  if (!column.date || column.date->form == DateForm::kTime || summary.numbers.count == 0) return {};
  const double last = column.scale == Scale::kLog ? std::expm1(summary.numbers.max) : summary.numbers.max;
  const bool short_years = summary.short_years > 0 && !column.date->before;
  YearsRemark remark{.future = last >= today() + 1};
  const std::string latest = write_date(last);
  if (short_years) {
    constexpr Index kFirst = kShortYearsBefore % 100;
    const std::chrono::sys_days now{std::chrono::days{static_cast<int>(today())}};
    remark.before = static_cast<int>(std::chrono::year_month_day{now}.year()) + 1;
    remark.text =
        fmt::format("years of two digits: {} to 99 are 19xx, 00 to {:02} are 20xx; the latest is {}", kFirst,
                    kFirst - 1, latest);
    if (remark.future) {
      remark.text +=
          fmt::format(", in the future: if all are of the past, say date({}, before={}) in data.columns",
                      to_string(column.date->form), remark.before);
    }
  } else if (remark.future) {
    remark.text = fmt::format("the latest of its dates, {}, is in the future", latest);
  }
  return remark;
}

Remarks infer_kinds(const TableText& table, std::vector<TableColumn>& columns, const Scan& scan) {
  Remarks remarks;
  const auto unknown = [](const TableColumn& column) { return column.kind == ColumnKind::kUnknown; };
  if (std::ranges::none_of(columns, unknown)) return remarks;
  if (scan.good == 0 && scan.bad > 0) {
    throw DataError("'{}' holds no records but {} bad ones; the first: {}", table.text.files.front().path,
                    with_commas(scan.bad), scan.rejects.front());
  }
  const FileSigns file = signs_of(scan, columns, table.text.dialect.separator);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    TableColumn& column = columns[i];
    if (!unknown(column)) continue;
    const ColumnGuess guess = guess_column(scan.columns[i], column.label, file);
    if (!guess.mixture.empty())
      throw ConfigError("'{}', column {}: {} in data.columns", table.text.files.front().path,
                        in_quotes(column.name), guess.mixture);
    take_guess(column, guess);
    if (guess.remark.empty()) continue;
    const std::string text =
        fmt::format("column {}{}: {}", in_quotes(column.name),
                    guess.kind == ColumnKind::kIgnored ? " is ignored" : "", guess.remark);
    const Index different = scan.columns[i].countless() ? 0 : scan.columns[i].distinct();
    if (guess.doubtful) {
      remarks.doubts.push_back(text);
    } else {
      remarks.notes.push_back({text, {{"texts", {{"column", column.name}, {"different", different}}}}});
    }
  }
  return remarks;
}

}  // namespace lockstep
