#include "init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <numeric>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/kinds/kind.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/math/shape.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr Index kMaxValues = 100'000;

// A directory, a pattern or a list is checked where it is read.
void check_path(const std::string& path) {
  const fs::path file = split_array_path(path).file;
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    if (fs::is_regular_file(file, ignored) && fs::file_size(file, ignored) == 0)
      throw DataError("'{}' is empty: expected the records to train on", path);
    return;
  }
  if (path.find_first_of("*?[{,") != std::string::npos) return;
  const std::string nearest = nearest_path(file, fs::file_type::regular);
  throw DataError("'{}' does not exist{}", path,
                  nearest.empty() ? fmt::format(" in '{}': correct the path, or fetch the data set",
                                                fs::current_path().string())
                                  : fmt::format("; did you mean '{}'?", nearest));
}

// The labels of a directory of arrays would be those of which file?
void refuse_directory(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return;
  throw DataError("'{}' is a directory: name one data file of it: {}", path,
                  listed(names_in(path, fs::file_type::regular), 10));
}

// Tables -----------------------------------------------------------------------------------------------

LabelFacts label_of_table(const TableInspection& table) {
  LabelFacts facts{.columns = 0, .whole = true, .can_be_named = true};
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!table.columns[i].label) continue;
    const ColumnSummary& summary = table.scan.columns[i];
    facts.name = fmt::format("label {}", in_quotes(table.columns[i].name));
    ++facts.columns;
    facts.texts += summary.texts;
    facts.numbers.merge(summary.numbers);
    facts.values = summary.values();
    facts.whole =
        facts.whole && !summary.number_counts.overflowed() && all_whole(summary.number_counts.by_count());
  }
  return facts;
}

Index width_of(const TableColumn& column, const ColumnSummary& summary) {
  if (!column.is_feature()) return 0;
  if (column.kind == ColumnKind::kNumeric || column.encoding != Encoding::kOneHot) return column.width();
  return 1 + summary.distinct() + (summary.missing > 0 ? 1 : 0);
}

void refuse_missing_label(const InitData& data) {
  if (!data.options.table.label.empty()) return;
  std::vector<std::string> names;
  for (const TableColumn& column : data.table->columns) names.push_back(column.name);
  throw ConfigError("--label is missing: name the column to learn, one of {}", listed(names));
}

// A test set without the label, as contests hand out, is data to predict.
void take_if_labelled(InitData& data, std::optional<std::string>& file) {
  if (!file) return;
  const std::vector<std::string> paths = list_files(*file, choose_format(data.options).extensions, "DATA");
  const TableSchema known{.missing_values = {}, .columns = data.table->columns};
  const std::vector<std::string> names = open_table_text(paths, data.table->options, alone(), &known).names;
  const auto has = [&names](const std::string& label) { return std::ranges::count(names, label) > 0; };
  if (std::ranges::all_of(data.options.table.label, has)) return;
  data.doubts.push_back(fmt::format("'{}' has no column {}: it is taken for data to predict", *file,
                                    in_quotes(data.options.table.label.front())));
  data.input = *file;
  file.reset();
}

// Whether a finding says that a column numbers the rows: it has the numbers from some first one on, each
// once.
bool numbers_the_rows(const InitData& data, const Finding& finding, const NumberStats& numbers) {
  const auto count = static_cast<double>(data.records);
  return finding.kind == FindingKind::kIdentifier && finding.count == data.records &&
         numbers.max - numbers.min + 1 == count &&
         std::ranges::count(data.options.table.numeric, finding.column) == 0;
}

bool is_of(const Finding& finding, std::initializer_list<FindingKind> kinds) {
  return std::ranges::count(kinds, finding.kind) > 0;
}

// Among many numbers a few texts make bad records, and no classes.
void take_bad_label(InitData& data) {
  TableInspection& table = *data.table;
  const auto label = std::ranges::find_if(table.columns, &TableColumn::label) - table.columns.begin();
  const TableColumn& column = at(table.columns, label);
  const ColumnSummary& summary = at(table.scan.columns, label);
  if (data.label.columns > 1 || summary.texts == 0 || column.kind != ColumnKind::kNumeric ||
      look_like_classes(summary.number_counts.by_count()))
    return;
  data.label.texts = 0;
  std::vector<RowColumn> rows(table.columns.size());
  at(rows, label) = row_column(column, Reading::kNumber, 0);
  const std::vector<ColumnWants> wants(1);
  const Scan scan = scan_table({.table = table.table,
                                .columns = rows,
                                .wants = wants,
                                .missing = table.options.missing_values,
                                .bad = {.action = OnBadRecord::kSkip}},
                               alone());
  data.doubts.push_back(fmt::format("{}: {} left out (on_bad_record), the first {}", data.label.name,
                                    scan.bad == 1 ? "1 record is" : plural(scan.bad, "record") + " are",
                                    scan.rejects.front()));
}

// Series of time: the sets are parts of their span.
void read_series(InitData& data) {
  TableInspection& table = *data.table;
  const WindowOptions& windows = data.options.table.windows;
  if (windows.horizon == 0)
    throw ConfigError("--time needs --horizon: how many positions to forecast, as in --horizon 28");
  table.series = summarise_series_of(table, data.options);
  data.forecast = plan_forecast(table, windows);
  data.test.reset();
  data.validation.reset();
  data.input = data.options.train;
  for (const Note& note : table.series->notes) data.doubts.push_back(note.text);
}

void read_table(InitData& data) {
  TableInspection& table = data.table.emplace(inspect_table(
      {data.options.train, list_files(data.options.train, choose_format(data.options).extensions, "DATA")},
      data.options.table));
  refuse_missing_label(data);
  if (table.scan.good == 0)
    throw DataError("'{}' holds no records, only a header or bad ones", data.options.train);
  data.records = table.scan.good;
  data.label = label_of_table(table);
  data.features.dims = {0};
  std::vector<std::string> said;
  for (const Finding& finding : table.findings) {
    if (finding.kind == FindingKind::kDuplicates) said.push_back(finding.text());
  }
  std::multimap<std::string_view, const Finding*> findings;  // by column
  for (const Finding& finding : table.findings) findings.emplace(finding.column, &finding);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    TableColumn& column = table.columns[i];
    std::string& remark = table.guesses[i].remark;
    const std::string name = fmt::format("column {}: ", in_quotes(column.name));
    error_if(!table.guesses[i].mixture.empty(), "{}{} in --data.columns", name, table.guesses[i].mixture);
    const auto [first, last] = findings.equal_range(column.name);
    for (auto each = first; each != last; ++each) {
      const Finding& finding = *each->second;
      if (column.kind == ColumnKind::kIgnored) continue;
      const bool of_dates = is_of(finding, {FindingKind::kTimes, FindingKind::kYears, FindingKind::kFarDate});
      if (numbers_the_rows(data, finding, table.scan.columns[i].numbers)) {
        column.kind = ColumnKind::kIgnored;
        remark = "the numbers of the rows, each once: it is ignored";
      } else if (finding.kind == FindingKind::kSentinel && column.is_feature() &&
                 2 * finding.count <= data.records) {
        column.missing_values.push_back(finding.value);
        said.push_back(name + finding.fact + ": taken for a missing value");
      } else if (of_dates || is_of(finding, {FindingKind::kLeak, FindingKind::kIdentifier,
                                             FindingKind::kSentinel, FindingKind::kSpelling})) {
        const bool has_setting = of_dates && !finding.setting.empty();
        said.push_back(name + finding.text() + (has_setting ? "; add " + finding.setting : ""));
      }
    }
    data.features.dims[0] += width_of(column, table.scan.columns[i]);
    if (!remark.empty() && !column.label) data.doubts.push_back(name + remark);
  }
  data.doubts.insert(data.doubts.end(), said.begin(), said.end());
  if (std::ranges::any_of(table.columns,
                          [](const TableColumn& each) { return !each.missing_values.empty(); }))
    summarise_again(table);
  if (const Index bad = count_bad(table); bad > 0)
    data.doubts.push_back(fmt::format(
        "{} of {} cannot be used, as a label or number is missing or another text: left out (on_bad_record)",
        with_commas(bad), plural(table.scan.good + table.scan.bad, "record")));
  take_bad_label(data);
  if (!data.options.table.windows.time.empty()) return read_series(data);
  for (std::optional<std::string>* file : {&data.test, &data.validation}) take_if_labelled(data, *file);
}

// Arrays and sparse records ----------------------------------------------------------------------------

void read_records(InitData& data) {
  const FormatEntry& format = choose_format(data.options);
  const bool unlabelled = format.reads("data.train_labels") && data.options.train_labels.empty();
  const std::unique_ptr<RecordSource> source =
      format.open({.options = data.options,
                   .peers = alone(),
                   .input = unlabelled ? std::optional(data.options.train) : std::nullopt,
                   .lengths = unlabelled ? data.options.train_lengths : ""});
  data.records = source->info().rows;
  data.features = source->info().features;
  LabelFacts& label = data.label;
  label.columns = source->info().target_columns;
  const std::optional<SequenceShape> sequence = as_sequence(data.features);
  if (sequence && sequence->positions > 1 && label.columns % sequence->positions == 0 && label.columns > 0) {
    label.positions = sequence->positions;
    label.columns /= label.positions;
  }
  std::vector<Index> lengths(static_cast<std::size_t>(label.positions + 1));
  std::iota(lengths.begin(), lengths.end(), 0);
  const TargetRule rule{.positions = label.positions, .lengths = lengths};
  std::vector<NumberSums> features(
      static_cast<std::size_t>(sequence ? sequence->channels : data.features.size()));
  NumberSums labels;
  std::map<double, Index> values;
  for_each_record(*source, rule, alone(), [&](std::span<const Scalar> x, std::span<const Scalar> targets) {
    for (std::size_t i = 0; i < x.size(); ++i) features[i % features.size()].add(x[i]);
    for (const Scalar target : targets) {
      if (std::isnan(target)) continue;  // of padding
      labels.add(target);
      if (std::ssize(values) < kMaxValues) ++values[target];
    }
  });
  for (const NumberSums& sums : features) {
    const NumberStats& stats = data.numbers.emplace_back(sums.stats());
    if (std::isfinite(stats.mean) && std::isfinite(stats.squares)) continue;
    throw DataError("feature {} of '{}' is not a finite number in some records: replace such values",
                    data.numbers.size() - 1, data.options.train);
  }
  label.numbers = labels.stats();
  if (std::ssize(values) >= kMaxValues) return;
  for (const auto& [value, count] : values) label.values.push_back({fmt::format("{}", value), count});
  label.whole = all_whole(label.values);
  std::ranges::stable_sort(label.values, std::greater<>(), &ValueCounts::Entry::count);
}

// The label is a field of the records, and all others that hold numbers are the features, unless the path
// says which.
void divide_fields(DataOptions& options, std::vector<std::string> fields, const std::string& label) {
  const ArrayPath path = split_array_path(options.train);
  options.train_labels = path.file + ":" + label;
  if (!path.fields.empty()) return;
  std::erase(fields, label);
  if (fields.empty()) {
    throw ConfigError("'{}' has no field of numbers beside the label {}", path.file, in_quotes(label));
  }
  options.train = fmt::format("{}:{}", path.file, fmt::join(fields, "+"));
}

// --label of arrays: a file, an array of one, or an array of the file that holds the features.
std::string labels_by_name(const std::string& path, const std::string& wanted,
                           const std::vector<std::string>& fields) {
  const std::string file = split_array_path(path).file;
  const ArrayPath parts = split_array_path(wanted);
  if (!parts.array.empty() || !parts.fields.empty() || is_there(wanted)) return wanted;
  const bool archive = holds_arrays(file);
  if (!archive && fields.empty()) {
    const fs::path directory = fs::path(file).parent_path();
    const std::string nearest =
        nearest_name(fs::path(wanted).filename().string(),
                     names_in(directory.empty() ? "." : directory, fs::file_type::regular));
    throw DataError(
        "--label names '{}', which does not exist{}: it is to name the file with the labels of '{}'", wanted,
        nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest), path);
  }
  const std::vector<std::string> names = archive ? list_arrays(file) : fields;
  if (archive && std::ranges::count(names, wanted.substr(wanted.starts_with('/') ? 1 : 0)) > 0)
    return file + ":" + wanted;
  throw ConfigError("--label: '{}' has no {} {}{}, it has {}", file, archive ? "array" : "field of numbers",
                    in_quotes(wanted), suggestion(wanted, names), listed(names));
}

// If they are not needed they may be missing.
void name_labels(InitData& data, const FormatEntry& format, bool needed) {
  DataOptions& options = data.options;
  const std::string path = options.train;
  const std::string file = split_array_path(path).file;
  const std::vector<std::string> fields =
      format.fields != nullptr ? format.fields(file) : std::vector<std::string>();
  if (!options.table.label.empty()) {
    const std::string label = fmt::format("{}", fmt::join(options.table.label, ","));
    options.table.label.clear();
    if (std::ranges::count(fields, label) > 0) {
      divide_fields(options, fields, label);
    } else {
      options.train_labels = labels_by_name(path, label, fields);
    }
  } else if (options.train_labels.empty()) {
    const std::optional<std::string> found = find_labels(path);
    if (!found && !needed) return;
    if (!found) {
      throw ConfigError("--label is missing: name {}",
                        !fields.empty() ? fmt::format("the field with the labels, one of {}", listed(fields))
                        : holds_arrays(file)
                            ? fmt::format("the array with the labels, one of {}", listed(list_arrays(file)))
                            : fmt::format("the file with the labels of '{}'", path));
    }
    options.train_labels = *found;
  }
  data.label.name = fmt::format("labels {}", in_quotes(options.train_labels));
}

// The array of an archive that can be the features of these labels.
void name_features(InitData& data) {
  DataOptions& options = data.options;
  if (!holds_arrays(options.train)) return;
  std::vector<std::string> fitting;
  for (const std::string& name : list_arrays(options.train)) {
    DataOptions tried = options;
    tried.train += ":" + name;
    if (tried.train == options.train_labels) continue;
    try {
      choose_format(tried).open({tried, Split::kTrain, 1, alone()});
      fitting.push_back(tried.train);
    } catch (const Error&) {  // the array has another length, or no features
    }
  }
  if (fitting.size() == 1) {
    options.train = fitting.front();
    return;
  }
  throw ConfigError("'{0}' has {1}: name the array with the features, as in '{0}:x_train'", options.train,
                    fitting.empty() ? fmt::format("no array of features with as many records as '{}', but {}",
                                                  options.train_labels, listed(list_arrays(options.train)))
                                    : fmt::format("several arrays with as many records as '{}' ({})",
                                                  options.train_labels, listed(fitting)));
}

// Records with lengths are sequences.
void take_for_sequences(DataOptions& options) {
  if (!options.train_lengths.empty() && options.record == RecordShape::kAuto)
    options.record = RecordShape::kSequence;
}

void name_lengths(DataOptions& options) {
  const bool may_be_sequences =
      options.record == RecordShape::kAuto || options.record == RecordShape::kSequence;
  if (options.train_lengths.empty() && may_be_sequences)
    options.train_lengths = find_lengths(options.train).value_or("");
  take_for_sequences(options);
}

// Sets beside arrays need their labels beside them, too, and their lengths if the records have some.
void take_if_paired(const InitData& data, std::optional<std::string>& file,
                    const std::vector<std::string>& words, std::string& labels, std::string& lengths) {
  if (!file) return;
  const auto partner = [&](const std::string& of_training, const auto& find) {
    std::optional<std::string> found = find_beside(of_training, words);
    return found ? found : find(*file);
  };
  const std::string& lengths_of_training = data.options.train_lengths;
  const std::optional<std::string> its_labels = partner(data.options.train_labels, find_labels);
  const std::optional<std::string> its_lengths =
      lengths_of_training.empty() ? "" : partner(lengths_of_training, find_lengths);
  if (!its_labels || !its_lengths) return file.reset();
  labels = *its_labels;
  lengths = *its_lengths;
}

// Two dimensions may be pixels as well as positions.
void doubt_shape(InitData& data) {
  const std::vector<Index>& dims = data.features.dims;
  if (data.options.record != RecordShape::kAuto || dims.size() != 2 || dims[0] == dims[1]) return;
  data.doubts.push_back(fmt::format(
      "records of {}: if they are sequences, {} positions of {} numbers, give --data.record sequence",
      to_string(data.features), dims[0], dims[1]));
}

}  // namespace

nlohmann::ordered_json to_json(const NumberStats& numbers) {
  return {
      {"min", numbers.min}, {"max", numbers.max}, {"mean", numbers.mean}, {"deviation", numbers.deviation()}};
}

InitData read_init_data(const std::string& path, const DataOptions& options, bool needs_labels) {
  check_path(path);
  InitData data{.options = options};
  data.options.train = path;
  const FormatEntry& format = choose_format(data.options);
  data.format = format.name;
  error_if(!format.has_files, "data.format \"{}\" has no file to look at", format.name);
  error_if(!format.reads("data.time") && !options.table.windows.time.empty(),
           "--time names a column of a table, and '{}' has the format '{}'", path, format.name);
  if (kind_of_files(data.options).has_tokens) {
    refuse_for_text(options);
    data.text = plan_text(data.options);
    data.input = path;
    return data;
  }
  const bool labels_beside = format.reads("data.train_labels");
  error_if(!labels_beside && !options.train_lengths.empty(), "--lengths: records of the format {} have none",
           format.name);
  if (labels_beside) {
    refuse_directory(path);
    take_for_sequences(data.options);
    name_labels(data, format, needs_labels);
    name_features(data);
    name_lengths(data.options);
  }
  data.test = find_beside(data.options.train, kTestWords);
  data.validation = find_beside(data.options.train, kValidationWords);
  data.input = data.test.value_or(data.options.train);
  if (format.reads("data.label")) {
    read_table(data);
    return data;
  }
  if (labels_beside) {
    take_if_paired(data, data.test, kTestWords, data.options.test_labels, data.options.test_lengths);
    take_if_paired(data, data.validation, kValidationWords, data.options.validation_labels,
                   data.options.validation_lengths);
  } else {
    error_if(!options.table.label.empty(),
             "--label: in files of format '{}' the labels stand in the records: leave it out", format.name);
    data.label.name = "the label";
    data.options.table.columns.clear();  // the labels are seen as they stand in the file
  }
  data.label.can_be_named = format.reads("data.columns");
  read_records(data);
  if (format.reads("data.record")) doubt_shape(data);
  return data;
}

}  // namespace lockstep
