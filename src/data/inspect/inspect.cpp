// The summary of a table, and the settings that train on it.
#include "lockstep/data/inspect/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "findings.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

// Numbers that stand for classes, and are not 0, 1, 2, ... already.
bool are_classes_by_other_numbers(const ColumnSummary& summary) {
  const std::vector<ValueCounts::Entry> numbers = summary.number_counts.by_count();
  const auto last = static_cast<double>(std::ssize(numbers) - 1);
  return look_like_classes(numbers) &&
         (summary.texts > 0 || summary.numbers.min != 0 || summary.numbers.max != last);
}

bool is_named(const std::vector<std::string>& names, const std::string& column) {
  return std::ranges::count(names, column) > 0;
}

void choose_kind(TableColumn& column, const ColumnSummary& summary, const ColumnGuess& guess) {
  if (column.kind != ColumnKind::kUnknown) return;
  take_guess(column, guess);
  if (column.label && are_classes_by_other_numbers(summary)) column.kind = ColumnKind::kCategorical;
}

// In series of time labels are numbers. Each of a few series is a category.
void take_roles(TableInspection& inspection) {
  constexpr Index kFewSeries = 20;
  const WindowOptions& windows = inspection.options.windows;
  if (windows.time.empty()) return;
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    TableColumn& column = inspection.columns[i];
    const ColumnSummary& summary = inspection.scan.columns[i];
    const bool is_series = is_named(windows.series, column.name);
    const bool few = !summary.countless() && summary.distinct() <= kFewSeries;
    if (column.label && summary.texts == 0) column.kind = ColumnKind::kNumeric;
    if (is_series)
      column = {.name = column.name, .kind = few ? ColumnKind::kCategorical : ColumnKind::kIgnored};
    if (column.name == windows.time) column.kind = ColumnKind::kIgnored;
    if (is_series || column.name == windows.time) inspection.guesses[i].remark.clear();
  }
  std::erase_if(inspection.findings, [&](const Finding& finding) {
    return finding.column == windows.time || is_named(windows.series, finding.column);
  });
}

ColumnGuess look_at_weight(const ColumnSummary& summary) {
  ColumnGuess guess{.kind = ColumnKind::kNumeric, .remark = ""};
  const Index without = summary.missing + summary.texts;
  if (without > 0) {
    guess.remark = fmt::format("{} {} no weight: a bad record", plural(without, "record"),
                               without == 1 ? "has" : "have");
  } else if (summary.numbers.min < 0) {
    guess.remark =
        fmt::format("weights go down to {:.4g}: a record with one below 0 is bad", summary.numbers.min);
  } else if (summary.numbers.max == 0) {
    guess.remark = "all weights are 0: there is nothing to learn";
  } else if (summary.numbers.min == summary.numbers.max) {
    guess.remark = "all weights are equal: as good as none";
  }
  return guess;
}

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(toml_string(name));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

// The words of data.columns for what no list says of a column, or "".
std::string words_for(const TableColumn& column) {
  if (column.date) return column.date->term();
  if (column.kind == ColumnKind::kCategorical) {
    if (column.label) return "categorical";
    return column.encoding == Encoding::kHash ? fmt::format("hash({})", column.buckets) : "";
  }
  if (column.kind != ColumnKind::kNumeric) return "";
  const std::string notation = column.notation ? column.notation->term() : "";
  const bool scaled = column.label && (column.scale == Scale::kLog || column.scale == Scale::kStandard);
  if (!scaled) return notation;
  const char* scale = to_string(column.scale);
  return notation.empty() ? scale : fmt::format("{} {}", notation, scale);
}

// "missing(-999)" of a column in which numbers stand for missing ones, or "".
std::string missing_word(const TableColumn& column, const std::vector<std::string>& known) {
  std::vector<std::string> numbers;
  for (const std::string& text : column.missing_values) {
    if (parse_number(text) && std::ranges::count(known, text) == 0) numbers.push_back(text);
  }
  return numbers.empty() ? "" : fmt::format("missing({})", fmt::join(numbers, ", "));
}

// data.columns: as given, and what no list says of the other columns.
std::vector<std::string> special_columns(const TableInspection& inspection) {
  std::vector<std::string> special = inspection.options.columns;
  for (const TableColumn& column : inspection.columns) {
    const bool given = std::ranges::any_of(inspection.options.columns, [&column](const std::string& text) {
      return std::string_view(text).substr(0, text.rfind(':')) == column.name;
    });
    const bool is_time = column.name == inspection.options.windows.time;
    std::string words = is_time ? "" : words_for(column);
    const std::string missing = missing_word(column, inspection.options.missing_values);
    if (!missing.empty()) words += (words.empty() ? "" : " ") + missing;
    if (!words.empty() && !given) special.push_back(column.name + ": " + words);
  }
  return special;
}

// Texts that stand for missing numbers in some columns; nothing where the default is enough.
void add_missing_values(std::vector<DataSetting>& settings, const TableInspection& inspection) {
  std::vector<std::string> texts = inspection.options.missing_values;
  for (const TableColumn& column : inspection.columns) {
    for (const std::string& text : column.missing_values) {
      if (!parse_number(text) && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
    }
  }
  if (texts != TableOptions{}.missing_values) settings.push_back({"missing_values", list_of(texts)});
}

void add_bad_records(std::vector<DataSetting>& settings, const TableInspection& inspection) {
  const Index bad = count_bad(inspection);
  if (bad == 0) return;
  settings.push_back({"on_bad_record", "\"skip\""});
  const double share =
      static_cast<double>(bad) / static_cast<double>(inspection.scan.good + inspection.scan.bad);
  if (share <= TableOptions{}.max_bad_share) return;
  settings.push_back({"max_bad_share", fmt::format("{:.3f}", std::min(1.0, std::ceil(share * 1000) / 1000))});
}

// Western programs wrote it before there was UTF-8, and some still do.
constexpr const char* kUsualEncoding = "windows-1252";

class Utf8Check final : public TextPass {
 public:
  explicit Utf8Check(const TextFiles& text) : reader_(text) {}
  TextReader& text() override { return reader_; }
  void take(const TextChunk& chunk, std::size_t) override { holds_ = holds_ && is_text(reader_.read(chunk)); }
  void start_again() override { holds_ = true; }
  bool names_lines() const override { return false; }
  bool holds() const { return holds_; }

 private:
  TextReader reader_;
  bool holds_ = true;
};

bool is_utf8(const std::vector<std::string>& paths, const TableOptions& options) {
  TextFiles text{.files = look_at_text_files(paths, {.quotes = options.quotes}, alone()),
                 .chunk_bytes = options.chunk_kib * 1024,
                 .dialect = {.quotes = options.quotes}};
  Utf8Check check(text);
  read_text(text, alone(), check);
  return check.holds();
}

// The report of an inspection.

using Json = nlohmann::ordered_json;

// Labels of series are forecast as numbers.
std::string kind_of(const TableColumn& column, const ColumnSummary& summary, const WindowOptions& windows) {
  if (column.name == windows.time) return "time";
  if (is_named(windows.series, column.name)) return "series";
  if (column.label)
    return windows.time.empty() && holds_classes(column, summary) ? "label, classes" : "label, numeric";
  if (column.weight) return "weight";
  if (column.kind == ColumnKind::kNumeric) return column.date ? "date" : "numeric";
  return column.kind == ColumnKind::kCategorical ? "categorical" : "ignore";
}

// Shares are those of all records.
std::string list_values(const ColumnSummary& summary, std::size_t most) {
  if (summary.countless()) return "very many different values";
  return list_shares(summary.values(), "different", summary.present() + summary.missing, most);
}

// The positive class of the only label, if that has two classes; else "".
std::string positive_class(const TableInspection& inspection) {
  const auto is_label = [](const TableColumn& column) { return column.label; };
  const std::vector<TableColumn>& columns = inspection.columns;
  const auto label = std::ranges::find_if(columns, is_label);
  if (std::ranges::count_if(columns, is_label) != 1) return "";
  const ColumnSummary& summary = at(inspection.scan.columns, label - columns.begin());
  const std::vector<std::string>& named = inspection.options.positive;
  const bool two = !summary.countless() && summary.distinct() == 2;
  const bool numbers = label->kind == ColumnKind::kNumeric;
  if (numbers ? !two || summary.numbers.min != 0 || summary.numbers.max != 1 : !two && named.empty())
    return "";
  return ordered_classes(summary.values(), named.empty() ? "" : named.front(),
                         fmt::format("column {}", in_quotes(label->name)))
      .back();
}

// The balance of classes matters.
std::string describe_values(const TableColumn& column, const ColumnSummary& summary) {
  constexpr std::size_t kMaxShown = 4;
  constexpr std::size_t kMaxClassesShown = 20;
  const bool numbers = summary.numbers.count > summary.texts && column.kind != ColumnKind::kCategorical;
  if (column.label && holds_classes(column, summary)) return list_values(summary, kMaxClassesShown);
  if (!numbers) return summary.present() == 0 ? "" : list_values(summary, kMaxShown);
  const NumberStats& stats = summary.numbers;
  if (column.date) {
    return fmt::format("{} to {}, {}", write_date(stats.min, column.date->form),
                       write_date(stats.max, column.date->form), column.date->term());
  }
  return fmt::format("{:.6g} to {:.6g}, mean {:.6g}, deviation {:.4g}", stats.min, stats.max, stats.mean,
                     stats.deviation());
}

std::vector<std::string> suspicious(const TableInspection& inspection) {
  std::vector<std::string> lines = inspection.table.warnings;
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const std::string& remark = inspection.guesses[i].remark;
    const TableColumn& column = inspection.columns[i];
    if (!remark.empty()) lines.push_back(fmt::format("column {}: {}", in_quotes(column.name), remark));
  }
  constexpr std::size_t kMaxFindings = 50;
  const auto shown = std::span(inspection.findings).first(std::min(kMaxFindings, inspection.findings.size()));
  for (const Finding& finding : shown) {
    const std::string about =
        finding.column.empty() ? "" : fmt::format("column {}: ", in_quotes(finding.column));
    const std::string add = finding.setting.empty() ? "" : fmt::format("; add {}", finding.setting);
    lines.push_back(about + finding.text() + add);
  }
  if (inspection.findings.size() > shown.size()) {
    lines.push_back(
        fmt::format("{} more of this kind; --json lists all", inspection.findings.size() - shown.size()));
  }
  const Scan& scan = inspection.scan;
  if (scan.bad > 0) {
    lines.push_back(fmt::format("{} of {} records are bad ({:.3g} %), the first: {}", with_commas(scan.bad),
                                with_commas(scan.good + scan.bad), 100 * scan.bad_share(),
                                scan.rejects.front()));
  }
  return lines;
}

std::string column_table(const TableInspection& inspection) {
  std::size_t width = 6;
  for (const TableColumn& column : inspection.columns) width = std::max(width, excerpt(column.name).size());
  width = std::min<std::size_t>(width, 30);
  const std::string positive = positive_class(inspection);
  std::string text = fmt::format("  {:<{}}  {:<14}  {:>9}  values\n", "column", width, "kind", "missing");
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const TableColumn& column = inspection.columns[i];
    const ColumnSummary& summary = inspection.scan.columns[i];
    const std::string missing =
        summary.missing == 0 ? "-" : fmt::format("{:.2f} %", percent(summary.missing, inspection.scan.good));
    const std::string yes =
        column.label && !positive.empty() ? fmt::format("; yes is {}", in_quotes(positive)) : "";
    text += fmt::format("  {:<{}}  {:<14}  {:>9}  {}{}\n", excerpt(column.name), width,
                        kind_of(column, summary, inspection.options.windows), missing,
                        describe_values(column, summary), yes);
  }
  return text;
}

Json inspected_column_json(const TableInspection& inspection, std::size_t i) {
  constexpr std::size_t kMaxValues = 100;
  const TableColumn& column = inspection.columns[i];
  const ColumnSummary& summary = inspection.scan.columns[i];
  const std::string& remark = inspection.guesses[i].remark;
  Json json{{"name", column.name},
            {"kind", kind_of(column, summary, inspection.options.windows)},
            {"missing", summary.missing},
            {"missing_share", percent(summary.missing, inspection.scan.good) / 100}};
  if (summary.numbers.count > 0) {
    json["numbers"] = {{"count", summary.numbers.count},
                       {"min", summary.numbers.min},
                       {"max", summary.numbers.max},
                       {"mean", summary.numbers.mean},
                       {"deviation", summary.numbers.deviation()}};
    if (column.date) {
      json["dates"] = {{"read_as", column.date->term()},
                       {"first", write_date(summary.numbers.min, column.date->form)},
                       {"last", write_date(summary.numbers.max, column.date->form)},
                       {"years_of_two_digits", summary.short_years}};
    }
  }
  if (!summary.countless()) {
    const std::vector<ValueCounts::Entry> values = summary.values();
    json["different"] = values.size();
    for (const ValueCounts::Entry& value : std::span(values).first(std::min(kMaxValues, values.size()))) {
      json["values"].push_back({{"value", value.text}, {"count", value.count}});
    }
  }
  if (!remark.empty()) json["remark"] = remark;
  return json;
}

std::string series_text(const SeriesSummary& summary) {
  const Season season = summary.seasons.empty() ? Season{} : summary.seasons.front();
  const std::string lengths =
      summary.shortest == summary.longest
          ? plural(summary.median, "position") + (summary.series > 1 ? " each" : "")
          : fmt::format("{} to {} positions, median {}", with_commas(summary.shortest),
                        with_commas(summary.longest), with_commas(summary.median));
  std::string text = fmt::format(
      "\nSeries of time\n  span    {} to {}\n  step    {}{}\n  series  {}, of {}\n"
      "  season  {} (autocorrelation {:.2f})\n",
      summary.first, summary.last, summary.step, summary.notes.empty() ? ", always" : ", as a rule",
      with_commas(summary.series), lengths,
      season.positions > 0 ? plural(season.positions, "position") : "none found", season.autocorrelation);
  for (const Note& note : summary.notes) text += fmt::format("  gaps    {}\n", note.text);
  return text;
}

// Texts such as None are categories, though numbers would be missing there.
void count_missing_texts(TableInspection& inspection) {
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const TableColumn& column = inspection.columns[i];
    if (column.kind != ColumnKind::kCategorical) continue;
    std::vector<std::string> missing = missing_in_categories(inspection.options.missing_values);
    missing.insert(missing.end(), column.missing_values.begin(), column.missing_values.end());
    inspection.scan.columns[i].count_missing_texts(missing);
  }
}

}  // namespace

TableInspection inspect_table(const FileSet& data, const TableOptions& given,
                              const std::vector<FileSet>& others) {
  const std::vector<std::string>& paths = data.paths;
  TableOptions options = given;
  const bool decodes = options.encoding == "auto" && !is_utf8(paths, options);
  if (decodes) options.encoding = kUsualEncoding;
  const TextFile first =
      look_at_text_file(paths.front(), {.quotes = options.quotes, .encoding = options.encoding});
  const FirstLines::Title title = FirstLines(first, options).title();
  if (options.skip_lines == 0) options.skip_lines = title.lines;
  TableInspection inspection{
      .path = data.name, .table = open_table_text(paths, options, alone()), .options = options};
  std::vector<std::string>& warnings = inspection.table.warnings;
  if (decodes) {
    warnings.push_back(fmt::format("the file is no UTF-8, and read as {}: do its names and texts look right?",
                                   kUsualEncoding));
  }
  if (options.skip_lines != given.skip_lines) warnings.push_back(title.describe());
  inspection.columns = declare_columns(options, inspection.table.names);
  summarise_again(inspection);
  const FileSigns file =
      signs_of(inspection.scan, inspection.columns, inspection.table.text.dialect.separator);
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    TableColumn& column = inspection.columns[i];
    const ColumnSummary& summary = inspection.scan.columns[i];
    inspection.guesses.push_back(column.weight ? look_at_weight(summary)
                                               : guess_column(summary, column.label, file));
    if (column.kind != ColumnKind::kUnknown) inspection.guesses.back().mixture.clear();
    choose_kind(column, summary, inspection.guesses.back());
  }
  const auto is_written_specially = [](const TableColumn& column) {
    return column.notation || column.date || !column.missing_values.empty();
  };
  count_missing_texts(inspection);
  // Now that it is known how their numbers are written.
  if (std::ranges::any_of(inspection.columns, is_written_specially)) summarise_again(inspection);
  inspection.findings = find_suspicious(inspection, others);
  take_roles(inspection);
  return inspection;
}

void summarise_again(TableInspection& inspection) {
  const std::vector<std::string>& missing = inspection.options.missing_values;
  inspection.scan = look_at_columns(inspection.table, inspection.columns, true, missing, alone());
  count_missing_texts(inspection);
}

Index count_bad(const TableInspection& inspection) {
  const auto labels = std::ranges::count_if(inspection.columns, &TableColumn::label);
  Index bad = inspection.scan.bad;
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const TableColumn& column = inspection.columns[i];
    const ColumnSummary& summary = inspection.scan.columns[i];
    if (column.kind == ColumnKind::kNumeric) bad += summary.texts;
    const bool needs_label = labels == 1 && inspection.options.windows.time.empty();
    if (column.weight || (column.label && needs_label)) bad += summary.missing;
  }
  return bad;
}

std::vector<DataSetting> data_settings(const TableInspection& inspection) {
  std::vector<DataSetting> settings{{"format", "\"csv\""}, {"train", toml_string(inspection.path)}};
  const auto add_names = [&](const char* key, const auto& belongs) {
    std::vector<std::string> names;
    for (const TableColumn& column : inspection.columns) {
      if (belongs(column)) names.push_back(column.name);
    }
    if (!names.empty()) settings.push_back({key, list_of(names)});
  };
  const auto is_feature_of = [](ColumnKind kind) {
    return [kind](const TableColumn& column) {
      return column.kind == kind && !column.is_label_or_weight() && !column.notation && !column.date;
    };
  };
  add_names("label", [](const TableColumn& column) { return column.label; });
  const auto is_of_classes = [](const TableColumn& column) {
    return column.label && column.kind == ColumnKind::kCategorical;
  };
  const std::string positive = positive_class(inspection);
  if (!positive.empty() && std::ranges::any_of(inspection.columns, is_of_classes))
    settings.push_back({"positive", list_of({positive})});
  for (const TableColumn& column : inspection.columns) {
    if (column.weight) settings.push_back({"weight", toml_string(column.name)});
  }
  add_names("numeric", is_feature_of(ColumnKind::kNumeric));
  add_names("categorical", is_feature_of(ColumnKind::kCategorical));
  add_names("ignore", is_feature_of(ColumnKind::kIgnored));
  const std::vector<std::string> special = special_columns(inspection);
  if (!special.empty()) settings.push_back({"columns", list_of(special)});
  const Dialect& dialect = inspection.table.text.dialect;
  add_missing_values(settings, inspection);
  settings.push_back({"header", inspection.table.header ? "\"yes\"" : "\"no\""});
  settings.push_back(
      {"separator", toml_string(dialect.separator == '\t' ? "tab" : std::string(1, dialect.separator))});
  const TableOptions& options = inspection.options;
  if (options.skip_lines > 0) settings.push_back({"skip_lines", fmt::format("{}", options.skip_lines)});
  if (!dialect.quotes) settings.push_back({"quotes", "false"});
  if (options.fold_case) settings.push_back({"fold_case", "true"});
  if (options.encoding != "auto") settings.push_back({"encoding", toml_string(options.encoding)});
  add_bad_records(settings, inspection);
  const WindowOptions& windows = options.windows;
  if (!windows.time.empty()) settings.push_back({"time", toml_string(windows.time)});
  if (!windows.series.empty()) settings.push_back({"series", list_of(windows.series)});
  return settings;
}

std::string data_section(const TableInspection& inspection) {
  const bool learns = std::ranges::any_of(inspection.columns, &TableColumn::label);
  std::string text = "[data]\n";
  for (const DataSetting& setting : data_settings(inspection)) {
    text += fmt::format("{} = {}\n", setting.name, setting.value);
    if (setting.name == "train" && !learns)
      text += "# label = [...]: the column to learn; 'trainer inspect FILE --label NAME' looks at it\n";
  }
  if (inspection.series) text += "# window, horizon, season: 'trainer init' with --horizon N chooses them\n";
  return text;
}

std::string list_shares(const std::vector<ValueCounts::Entry>& values, std::string_view noun, Index whole,
                        std::size_t most) {
  std::vector<std::string> shown;
  for (const ValueCounts::Entry& value : std::span(values).first(std::min(most, values.size())))
    shown.push_back(fmt::format("{} {:.1f} %", in_quotes(value.text), percent(value.count, whole)));
  return fmt::format("{} {}: {}{}", with_commas(std::ssize(values)), noun, fmt::join(shown, ", "),
                     values.size() > most ? ", ..." : "");
}

std::string to_text(const TableInspection& inspection) {
  const Dialect& dialect = inspection.table.text.dialect;
  std::string text =
      fmt::format("{}: {} of {}, separated by {}, {}\n\n{}", inspection.path,
                  plural(inspection.scan.good, "record"), plural(std::ssize(inspection.columns), "column"),
                  dialect.separator == '\t' ? "tabs" : fmt::format("'{}'", dialect.separator),
                  inspection.table.header ? "with a header" : "without a header", column_table(inspection));
  if (inspection.series) text += series_text(*inspection.series);
  const std::vector<std::string> lines = suspicious(inspection);
  if (!lines.empty()) text += "\nSuspicious\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text + "\nTo train on it:\n\n" + data_section(inspection);
}

std::string to_json(const TableInspection& inspection) {
  Json json{{"file", inspection.path},
            {"records", inspection.scan.good},
            {"bad_records", inspection.scan.bad},
            {"header", inspection.table.header},
            {"separator", std::string(1, inspection.table.text.dialect.separator)},
            {"columns", Json::array()},
            {"suspicious", suspicious(inspection)},
            {"findings", Json::array()},
            {"config", data_section(inspection)}};
  for (std::size_t i = 0; i < inspection.columns.size(); ++i)
    json["columns"].push_back(inspected_column_json(inspection, i));
  const std::string positive = positive_class(inspection);
  if (!positive.empty()) json["positive"] = positive;
  for (const Finding& finding : inspection.findings) {
    json["findings"].push_back({{"kind", to_string(finding.kind)},
                                {"column", finding.column.empty() ? Json() : Json(finding.column)},
                                {"count", finding.count},
                                {"text", finding.text()},
                                {"setting", finding.setting.empty() ? Json() : Json(finding.setting)}});
  }
  return json.dump(2) + "\n";
}

std::string to_string(FindingKind kind) {
  constexpr std::array kNames{
      "leak",     "duplicates", "overlap",         "drift", "unseen", "imbalance", "identifier", "rounding",
      "sentinel", "spelling",   "nearly constant", "times", "years",  "far date",  "missing"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace lockstep
