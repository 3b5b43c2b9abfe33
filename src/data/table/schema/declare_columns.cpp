// The columns of a table as [data] declares them.
#include "lockstep/data/table/values/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/terms.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

constexpr Index kMaxBuckets = Index{1} << 24;

// The setting of all columns that takes a word, beside data.columns.
enum class Topic { kKind, kScale, kMissing, kEncode };

struct Word {
  Topic topic;
  std::string name;
  std::function<void(TermArguments&, TableColumn&)> apply;
};

constexpr const char* kBins = "bins";

void take_bins(TermArguments& arguments, TableColumn& column) {
  column.bins = arguments.take_index("count", 2);
  error_if(column.bins > kMaxBins, "expected at most {} bins, found {}", kMaxBins, column.bins);
  const std::string by = arguments.take_word("by", "quantiles");
  error_if(by != "quantiles" && by != "label", "'by' is {}, expected quantiles or label", in_quotes(by));
  column.bin_edges = by == "label" ? BinEdges::kLabel : BinEdges::kQuantiles;
  column.leaf_records =
      column.bin_edges == BinEdges::kLabel ? arguments.take_index("leaf", 1, kLeafRecords) : kLeafRecords;
}

void take_buckets(TermArguments& arguments, TableColumn& column) {
  column.encoding = Encoding::kHash;
  column.buckets = arguments.take_index("buckets", 1);
  if (column.buckets > kMaxBuckets)
    throw ConfigError("expected at most {} buckets, found {}", kMaxBuckets, column.buckets);
}

// A sign by itself or by its name, which needs no quotes; 0 for none.
char take_character(TermArguments& arguments, const char* key, std::string_view fallback,
                    std::string_view known) {
  const std::string text = arguments.take_word(key, fallback);
  const auto* const name = std::ranges::find(kNumberSigns, text, &Named<char>::name);
  const char sign = name != std::end(kNumberSigns) ? name->value : text.size() == 1 ? text.front() : '\1';
  error_if(sign != 0 && known.find(sign) == std::string_view::npos, "'{}' is {}, expected {}", key,
           in_quotes(text),
           key == std::string_view("decimal") ? "point or comma" : "comma, point, space, apostrophe or none");
  return sign;
}

NumberNotation take_notation(TermArguments& arguments) {
  const char thousands = take_character(arguments, "thousands", "none", ",. '");
  NumberNotation notation{
      .decimal = take_character(arguments, "decimal", thousands == '.' ? "comma" : "point", ".,"),
      .thousands = thousands,
      .prefix = arguments.take_word("prefix", ""),
      .suffix = arguments.take_word("suffix", "")};
  if (notation.decimal == 0) throw ConfigError("'decimal' is none, expected point or comma");
  error_if(notation.decimal == notation.thousands, "'decimal' and 'thousands' are the same sign");
  return notation;
}

template <class E, std::size_t kCount>
E named(std::string_view noun, std::string_view name, const Named<E> (&known)[kCount],
        std::string_view expected) {
  const auto* const found = std::ranges::find(known, name, &Named<E>::name);
  if (found != std::end(known)) return found->value;
  throw ConfigError("the {} {} is not known, expected {}", noun, in_quotes(name), expected);
}

// "date(dmy, day, weekday)": a form, then parts; without parts the usual ones.
DateReading take_date(TermArguments& arguments) {
  DateReading date;
  date.form =
      named("form", arguments.take_next("a form of dates"), kDateForms,
            "ymd, dmy, mdy, time, week, ordinal, ym, my, epoch, epoch_ms, epoch_us, epoch_ns or excel");
  while (arguments.has_next()) {
    const std::string name = arguments.take_next("a part");
    const DatePart part = named("part", name, kDateParts, "day, day_of_year, year, month, weekday or hour");
    if (date.form == DateForm::kTime && part != DatePart::kHour)
      throw ConfigError("a time of day has no {}, only the part hour", in_quotes(name));
    date.parts.push_back(part);
  }
  if (date.parts.empty()) date.parts = usual_parts(date.form, counts_seconds(date.form));
  constexpr Index kNone = 0;
  constexpr Index kFirst = 100;
  constexpr Index kLast = 9999;
  const Index before = arguments.take_index("before", kFirst, kNone);
  if (before == kNone) return date;
  error_if(before > kLast, "'before' is {}, expected a year up to {}", before, kLast);
  error_if(!has_short_years(date.form),
           "'before' says of which century years of two digits are, and date({}) has none",
           to_string(date.form));
  date.before = before;
  return date;
}

// Gives a member of the column that value.
template <class T>
auto sets(T TableColumn::*member, T value) {
  return [member, value](TermArguments&, TableColumn& column) { column.*member = value; };
}

const std::vector<Word>& all_words() {
  static const std::vector<Word> kWords{
      {Topic::kKind, "numeric", sets(&TableColumn::kind, ColumnKind::kNumeric)},
      {Topic::kKind, "categorical", sets(&TableColumn::kind, ColumnKind::kCategorical)},
      {Topic::kKind, "ignore", sets(&TableColumn::kind, ColumnKind::kIgnored)},
      {Topic::kKind, "date",
       [](TermArguments& arguments, TableColumn& column) {
         column.kind = ColumnKind::kNumeric;
         column.date = take_date(arguments);
       }},
      {Topic::kKind, "number",
       [](TermArguments& arguments, TableColumn& column) {
         column.kind = ColumnKind::kNumeric;
         column.notation = take_notation(arguments);
       }},
      {Topic::kKind, "missing",
       [](TermArguments& arguments, TableColumn& column) {
         do column.missing_values.push_back(arguments.take_next("a value that stands for a missing one"));
         while (arguments.has_next());
       }},
      {Topic::kKind, "fold_case", sets(&TableColumn::fold_case, true)},
      {Topic::kScale, "standard", sets(&TableColumn::scale, Scale::kStandard)},
      {Topic::kScale, "minmax", sets(&TableColumn::scale, Scale::kMinMax)},
      {Topic::kScale, "log", sets(&TableColumn::scale, Scale::kLog)},
      {Topic::kScale, "robust", sets(&TableColumn::scale, Scale::kRobust)},
      {Topic::kScale, "none", sets(&TableColumn::scale, Scale::kNone)},
      {Topic::kScale, kBins, take_bins},
      {Topic::kMissing, "mean", sets(&TableColumn::fill, std::optional<double>())},
      {Topic::kMissing, "constant",
       [](TermArguments& arguments, TableColumn& column) {
         column.fill = arguments.take_number("value", 0);
       }},
      {Topic::kEncode, "onehot", sets(&TableColumn::encoding, Encoding::kOneHot)},
      {Topic::kEncode, "index", sets(&TableColumn::encoding, Encoding::kIndex)},
      {Topic::kEncode, "hash", take_buckets}};
  return kWords;
}

std::vector<Word> words_of(Topic topic) {
  std::vector<Word> words;
  std::ranges::copy_if(all_words(), std::back_inserter(words),
                       [topic](const Word& word) { return word.topic == topic; });
  return words;
}

// Words on numbers replace all of an earlier text: bins(8) alone are bins without the number.
void forget_scale(std::string_view key, const std::vector<Term>& terms, TableColumn& column) {
  const auto stands_there = [&terms](std::string_view name) {
    return std::ranges::count(terms, name, &Term::name) > 0;
  };
  const bool bins = stands_there(kBins);
  const bool scales = std::ranges::any_of(words_of(Topic::kScale), [&](const Word& word) {
    return word.name != kBins && stands_there(word.name);
  });
  if (!scales && !bins) return;
  error_if(bins && stands_there("date"),
           "{}: bins are of numbers, and a date has parts: leave out bins or date", key);
  column.scale = Scale::kStandard;
  column.bins = 0;
  column.keeps_number = scales;
}

// The last one of such words would win in silence.
void refuse_several(std::string_view key, std::string_view text, const std::vector<Term>& terms) {
  static const std::vector<std::set<std::string>> kOneOf{{"standard", "minmax", "log", "robust", "none"},
                                                         {"numeric", "categorical", "ignore"},
                                                         {"date", "number", "categorical", "ignore"},
                                                         {"mean", "constant"},
                                                         {"onehot", "index", "hash"},
                                                         {kBins}};
  for (const std::set<std::string>& group : kOneOf) {
    const auto is_in = [&group](const Term& term) { return group.contains(term.name); };
    error_if(std::ranges::count_if(terms, is_in) > 1, "{}: {} has several of {}: leave all but one out", key,
             in_quotes(text), fmt::join(group, ", "));
  }
}

void apply(std::string_view key, std::string_view text, const std::vector<Word>& words, TableColumn& column) {
  const TermsOption option{.key = key, .name = "a word", .example = words.front().name, .composites = {}};
  const std::vector<Term> terms = parse_terms(text, option);
  refuse_several(key, text, terms);
  forget_scale(key, terms, column);
  for (const Term& term : terms) {
    try {
      TermArguments arguments(term);
      find_entry<Word>(words, "word", term.name).apply(arguments, column);
      arguments.finish();
    } catch (const ConfigError& error) {
      throw ConfigError("{}: {}: {}", key, in_quotes(term.text), error.what());
    }
  }
}

// The notation that data.decimal and data.thousands say for all columns.
std::optional<NumberNotation> usual_notation(const TableOptions& options) {
  if (options.decimal == "." && options.thousands == "none") return std::nullopt;
  Term term{.option = "data.decimal", .name = "number", .arguments = {}, .chains = {}, .text = ""};
  term.arguments.push_back({.key = "decimal", .value = options.decimal});
  term.arguments.push_back({.key = "thousands", .value = options.thousands});
  TermArguments arguments(term);
  try {
    return take_notation(arguments);
  } catch (const ConfigError& error) {
    throw ConfigError("data.decimal and data.thousands: {}", error.what());
  }
}

class Declaration {
 public:
  Declaration(const TableOptions& options, const std::vector<std::string>& names) : names_(names) {
    TableColumn usual;
    apply("data.scale", options.scale, words_of(Topic::kScale), usual);
    apply("data.missing", options.missing, words_of(Topic::kMissing), usual);
    apply("data.encode", options.encode, words_of(Topic::kEncode), usual);
    usual.notation = usual_notation(options);
    usual.fold_case = options.fold_case;
    // Texts are looked up in the list itself, and only where a column has no number.
    std::ranges::copy_if(options.missing_values, std::back_inserter(usual.missing_values),
                         [](const std::string& text) { return parse_number(text).has_value(); });
    columns_.assign(names.size(), usual);
    for (std::size_t i = 0; i < names.size(); ++i) {
      columns_[i].name = names[i];
      number_of_.emplace(names[i], i);
    }
    for (const std::string& name : options.label) declare_label(name);
    if (!options.weight.empty()) declare_weight(options.weight);
    declare_kind("data.numeric", options.numeric, ColumnKind::kNumeric);
    declare_kind("data.categorical", options.categorical, ColumnKind::kCategorical);
    if (const WindowOptions& windows = options.windows; windows.any()) {
      // Before data.ignore, which has names of theirs.
      find("data.time", windows.time);
      for (const std::string& name : windows.series) find("data.series", name);
      for (const std::string& name : windows.future) find("data.future", name);
    }
    declare_kind("data.ignore", options.ignore, ColumnKind::kIgnored);
    for (const std::string& text : options.columns) declare_special(text);
    if (!options.positive.empty()) declare_positive(options);
  }

  std::vector<TableColumn> take() { return std::move(columns_); }

 private:
  TableColumn& find(std::string_view key, std::string_view name) {
    const auto found = number_of_.find(name);
    if (found != number_of_.end()) return columns_[found->second];
    const std::string nearest = nearest_name(name, names_);
    const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean {}?", in_quotes(nearest));
    throw ConfigError("{}: there is no column {}{} (columns: {})", key, in_quotes(name), hint,
                      listed(names_));
  }

  static void keep_as_it_is(TableColumn& column) {
    column.scale = Scale::kNone;
    column.bins = 0;
    column.keeps_number = true;
  }

  void declare_label(const std::string& name) {
    TableColumn& column = find("data.label", name);
    if (column.label) throw ConfigError("data.label names {} twice", in_quotes(name));
    column.label = true;
    column.fold_case = false;  // its classes, and data.positive, are as they are written
    keep_as_it_is(column);
  }

  void declare_weight(const std::string& name) {
    TableColumn& column = find("data.weight", name);
    if (column.label) throw ConfigError("data.weight: column {} is the label", in_quotes(name));
    column.weight = true;
    column.kind = ColumnKind::kNumeric;
    keep_as_it_is(column);
    column.missing_values.clear();
    column.fill.reset();
  }

  static void refuse_weight(std::string_view key, const TableColumn& column) {
    if (!column.weight) return;
    throw ConfigError(
        "{}: column {} is the weight of the records (data.weight), which is taken as it is and is no "
        "feature: do not name it here",
        key, in_quotes(column.name));
  }

  void declare_kind(std::string_view key, const std::vector<std::string>& names, ColumnKind kind) {
    for (const std::string& name : names) {
      TableColumn& column = find(key, name);
      refuse_weight(key, column);
      error_if(column.kind != ColumnKind::kUnknown, "{}: column {} is named twice: give each column one kind",
               key, in_quotes(name));
      error_if(column.label && kind == ColumnKind::kIgnored,
               "{}: column {} is the label, which cannot be ignored", key, in_quotes(name));
      column.kind = kind;
    }
  }

  // "zip: categorical hash(256)"
  void declare_special(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    error_if(colon == std::string::npos,
             "data.columns: expected a column, a colon and words, such as \"zip: hash(256)\", found {}",
             in_quotes(text));
    TableColumn& column = find("data.columns", std::string_view(text).substr(0, colon));
    refuse_weight("data.columns", column);
    const ColumnKind before = column.kind;
    apply("data.columns", std::string_view(text).substr(colon + 1), all_words(), column);
    error_if(before != ColumnKind::kUnknown && column.kind != before,
             "data.columns: {} gives column {} another kind than the list that names it", in_quotes(text),
             in_quotes(column.name));
    error_if(column.label && (column.bins > 0 || column.scale == Scale::kRobust),
             "data.columns: column {} is the label, of which there are no bins and no robust scale, as "
             "predictions are to be in its own units: say standard, minmax or log",
             in_quotes(column.name));
    error_if(column.label && column.fold_case,
             "data.columns: column {} is the label, whose classes are as they are written: write each in one "
             "way in the file",
             in_quotes(column.name));
    error_if(column.label && (column.kind == ColumnKind::kIgnored || column.date),
             "data.columns: column {} is the label, which cannot be {}", in_quotes(column.name),
             column.date ? "a date" : "ignored");
  }

  // The values of a label that has a positive class are classes.
  void declare_positive(const TableOptions& options) {
    const std::size_t labels = options.label.size();
    error_if(
        options.positive.size() != 1 && options.positive.size() != labels,
        "data.positive names {} classes, and data.label {} columns: name one class for all, or one for each",
        options.positive.size(), labels);
    for (TableColumn& column : columns_) {
      if (!column.label) continue;
      error_if(column.kind == ColumnKind::kNumeric,
               "data.positive names a class, but column {} is declared as a number", in_quotes(column.name));
      column.kind = ColumnKind::kCategorical;
    }
  }

  const std::vector<std::string>& names_;
  std::unordered_map<std::string_view, std::size_t> number_of_;  // index of each column, by its name
  std::vector<TableColumn> columns_;
};

}  // namespace

std::vector<TableColumn> declare_columns(const TableOptions& options, const std::vector<std::string>& names) {
  return Declaration(options, names).take();
}

}  // namespace lockstep
