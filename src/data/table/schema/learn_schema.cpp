// A schema turns the cells of a table into features: for each column its kind, and what encoding it needs.
// Learning it takes up to three passes over the training data, each shared by all ranks. The first
// (infer_kinds) guesses the kind of each column that the config leaves open. The second collects statistics
// of numbers, and counts of texts, for the columns as they are then declared. With a validation share there
// is a third: only after the second the number of each record is known, and with it which records are held
// out, whose values must not be learnt from.
//
// Categories are kept in order of their counts, data.vocabulary of them at most; rarer ones become the
// category of unknown values. A missing value is a category of its own. Classes of a label are all kept, also
// those that only held-out records have, and are in the order of ordered_classes(), for which held-out
// records count, too.
#include "encoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/schema/scan.h"

namespace lockstep {
namespace {

// More categories are counted nowhere: they are for hashing.
constexpr Index kMaxCategories = 1'000'000;

bool needs_quantiles(const TableColumn& column) {
  return column.is_feature() && column.kind == ColumnKind::kNumeric &&
         (column.bins > 0 || column.scale == Scale::kRobust);
}

bool needs_label(const TableColumn& column) {
  return needs_quantiles(column) && column.bins > 0 && column.bin_edges == BinEdges::kLabel;
}

// The columns of which a sample of numbers is kept: for quantiles, and the label for bins by it.
std::vector<bool> sampled_columns(const std::vector<TableColumn>& columns) {
  const bool labels = std::ranges::any_of(columns, needs_label);
  std::vector<bool> sampled;
  for (const TableColumn& column : columns)
    sampled.push_back(needs_quantiles(column) || (labels && column.is_label_or_weight()));
  return sampled;
}

void check_label(const TableOptions& options, const std::vector<TableColumn>& columns) {
  const auto by_label = std::ranges::find_if(columns, needs_label);
  if (by_label == columns.end() || options.label.size() == 1) return;
  throw ConfigError(
      "column {}: bins(..., by=label) come from a tree that learns one label, and data.label names {} ({}): "
      "say bins({}), whose edges are quantiles",
      in_quotes(by_label->name), options.label.size(), listed(options.label), by_label->bins);
}

// `sample`: numbers that the column keeps.
ColumnWants wants_of(const TableColumn& column, Index sample) {
  if (column.kind != ColumnKind::kCategorical) {
    return {.logarithm = column.scale == Scale::kLog, .quantiles = sample};
  }
  // A hashed column needs no counts: it only has to be text.
  // A class is one wherever it occurs.
  return {.max_texts = column.is_hashed() ? 1 : kMaxCategories, .of_all = column.label, .quantiles = sample};
}

// The positive class of a label as the options name it, or "".
std::string positive_of(const TableColumn& label, const TableOptions& options) {
  if (options.positive.size() < 2) return options.positive.empty() ? "" : options.positive.front();
  return at(options.positive, std::ranges::find(options.label, label.name) - options.label.begin());
}

void learn_categories(TableColumn& column, const ColumnSummary& summary, const TableOptions& options,
                      std::vector<Note>& remarks) {
  if (column.is_hashed()) return;
  ValueCounts counts = summary.text_counts;
  // A category of their own; of several labels, one that is missing is no class.
  if (summary.missing > 0 && !column.label) counts.add("", summary.missing);
  error_if(counts.overflowed(),
           "column {0} has more than {1} different values: hash it (data.columns = [\"{2}: hash(1024)\"]) or "
           "ignore it (data.ignore)",
           in_quotes(column.name), with_commas(kMaxCategories), excerpt(column.name));
  if (column.label) {
    column.values = ordered_classes(counts.by_count(), positive_of(column, options),
                                    fmt::format("column {}", in_quotes(column.name)));
    return;
  }
  Index known = 0;
  Index all = 0;
  for (const ValueCounts::Entry& entry : counts.by_count()) {
    all += entry.count;
    if (std::ssize(column.values) >= options.vocabulary) continue;
    known += entry.count;
    column.values.push_back(entry.text);
  }
  if (known == all) return;
  remarks.push_back({.text = fmt::format(
                         "column {} has {} categories, more than data.vocabulary = {}: {} of {} records have "
                         "one of the others",
                         in_quotes(column.name), with_commas(counts.distinct()), options.vocabulary,
                         with_commas(all - known), with_commas(all)),
                     .figures = {{"categories",
                                  {{"column", column.name},
                                   {"different", counts.distinct()},
                                   {"others", all - known},
                                   {"of", all}}}}});
}

// The least and the greatest number are known, also where quantiles are those of a sample. A column without
// any number is encoded as if all were its mean, 0.
void learn_quantiles(TableColumn& column, std::vector<double> sorted) {
  if (sorted.empty()) sorted.push_back(column.numbers.mean);
  if (column.numbers.count > 0) {
    sorted.front() = column.numbers.min;
    sorted.back() = column.numbers.max;
  }
  if (column.scale == Scale::kRobust) column.quartiles = quartiles_of(sorted);
  if (column.bins > 0) column.edges = edges_of(sorted, column.bins);
}

LabelSample label_sample(const TableSchema& schema, const Scan& scan) {
  const auto& columns = schema.columns;
  const auto label = std::ranges::find_if(columns, &TableColumn::label) - columns.begin();
  const auto weight = std::ranges::find_if(columns, &TableColumn::weight) - columns.begin();
  return {at(scan.columns, label).quantiles,
          weight == std::ssize(columns) ? nullptr : &at(scan.columns, weight).quantiles,
          at(columns, label).kind == ColumnKind::kCategorical};
}

// In the place of the edges that quantiles gave: the thresholds of a tree between the least and the greatest
// number.
void learn_edges_by_label(TableColumn& column, const LabelSample& labels, const ValueSample& numbers) {
  const double least = column.edges.front();
  const double greatest = column.edges.back();
  column.edges = {least};
  for (const double threshold : tree_thresholds(
           labels.join(numbers),
           {.max_leaves = column.bins, .leaf_records = column.leaf_records, .classes = labels.classes()})) {
    if (threshold > column.edges.back() && threshold < greatest) column.edges.push_back(threshold);
  }
  if (greatest > least) column.edges.push_back(greatest);
}

// Numbers that are learnt as they are become single precision first.
void doubt_rounding(const TableColumn& column, std::vector<std::string>& doubts) {
  const bool raw = column.scale == Scale::kNone && (column.bins == 0 || column.keeps_number);
  if (!column.is_number() || column.weight || !raw || !column.numbers.merge_in_single_precision()) return;
  doubts.push_back(
      fmt::format("the numbers of column {}, from {:.17g} to {:.17g}, lose in single precision what tells "
                  "them apart: scale them (data.columns = [\"{}: standard\"])",
                  in_quotes(column.name), column.numbers.min, column.numbers.max, excerpt(column.name)));
}

void learn_columns(LearntSchema& learnt, const TableOptions& options) {
  TableSchema& schema = learnt.schema;
  std::optional<LabelSample> labels;
  if (std::ranges::any_of(schema.columns, needs_label)) labels = label_sample(schema, learnt.scan);
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    TableColumn& column = schema.columns[i];
    const ColumnSummary& summary = learnt.scan.columns[i];
    column.missing = summary.missing;
    column.numbers = summary.numbers;
    if (needs_quantiles(column)) learn_quantiles(column, summary.quantiles.sorted());
    doubt_rounding(column, learnt.doubts);
    if (needs_label(column)) learn_edges_by_label(column, *labels, summary.quantiles);
    if (column.kind == ColumnKind::kCategorical) {
      learn_categories(column, summary, options, learnt.remarks);
    }
  }
}

// The years of dates, where they may not be what the table means; nothing where data.columns says the form
// and all digits are there.
void remark_on_dates(LearntSchema& learnt, const std::vector<TableColumn>& declared) {
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const YearsRemark remark = remark_on_years(learnt.schema.columns[i], learnt.scan.columns[i]);
    if (remark.text.empty() || (declared[i].date && remark.before == 0)) continue;
    const std::string text = fmt::format("column {}: {}", in_quotes(declared[i].name), remark.text);
    if (remark.future) {
      learnt.doubts.push_back(text);
    } else {
      learnt.remarks.push_back({text});
    }
  }
}

// A text that stands for a missing value counts as one before it is read as a number or a date. Schemas that
// do not name such texts of a column were learnt the other way.
void name_missing_numbers(TableSchema& schema) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    TableColumn& column = schema.columns[i];
    if (column.kind != ColumnKind::kNumeric || column.weight) continue;
    const RowColumn row = row_column(column, Reading::kNumber, i);
    for (const std::string& text : schema.missing_values) {
      Cell ignored;
      const bool is_named = std::ranges::count(column.missing_values, text) > 0;
      if (!is_named && read_value(text, row, ignored)) column.missing_values.push_back(text);
    }
  }
}

void refuse_doubts(const LearntSchema& learnt, const TableText& table, const TableOptions& options) {
  if (!options.strict || learnt.doubts.empty()) return;
  throw DataError("{} (data.strict = true): {}; say what it is in [data]",
                  in_quotes(table.text.files.front().path), fmt::join(learnt.doubts, "; "));
}

// The statistics that the columns need, of the records that are not held back.
Scan scan_columns(const TableText& table, const TableSchema& schema, const TableOptions& options,
                  const HoldOut& held, PeerGroup& peers) {
  std::vector<ColumnWants> wants;
  const std::vector<bool> sampled = sampled_columns(schema.columns);
  const Index kept = kept_for_quantiles(std::ranges::count(sampled, true));
  for (std::size_t i = 0; i < sampled.size(); ++i)
    wants.push_back(wants_of(schema.columns[i], sampled[i] ? kept : 0));
  const std::vector<RowColumn> columns = match_columns(table, schema, true);
  ScanRequest request{.table = table,
                      .columns = columns,
                      .wants = wants,
                      .missing = schema.missing_values,
                      .bad = {.action = options.on_bad_record, .most = options.max_bad_share}};
  Scan scan = scan_table(request, peers);
  if (!held.any()) return scan;
  // A second scan, now that the number of each record is known.
  std::vector<Index> first{0};
  for (const Index rows : scan.chunk_rows) first.push_back(first.back() + rows);
  request.counts = [&](std::size_t chunk, Index position) { return held.leaves(first[chunk] + position); };
  return scan_table(request, peers);
}

void check_learnt(const TableText& table, const TableSchema& schema, const Scan& scan) {
  error_if<DataError>(scan.good == 0, "'{}' holds no records{}", table.text.files.front().path,
                      scan.bad > 0   ? fmt::format(" but {} bad ones", with_commas(scan.bad))
                      : table.header ? ", only a header"
                                     : "");
  error_if<DataError>(schema.features() == 0 && !schema.windows,
                      "no column of '{}' is left as a feature (its columns: {})",
                      table.text.files.front().path, listed(table.names));
}

}  // namespace

LearntSchema learn_schema(const TableText& table, const TableOptions& options, const HoldOut& held,
                          PeerGroup& peers) {
  LearntSchema learnt;
  for (const std::string& warning : table.warnings) learnt.remarks.push_back({warning});
  TableSchema& schema = learnt.schema;
  schema.missing_values = options.missing_values;
  if (const WindowOptions& windows = options.windows; windows.any())
    schema.windows = {windows.window, windows.horizon, windows.series, windows.future};
  peers.agree([&] {
    if (options.label.empty()) {
      throw ConfigError(
          "data.label is missing: name the column to learn (of '{}': {}); 'trainer inspect FILE --label "
          "NAME' writes a whole [data] section",
          table.text.files.front().path, listed(table.names));
    }
    schema.columns = declare_columns(options, table.names);
  });
  const std::vector<TableColumn> declared = schema.columns;
  Remarks inferred = infer_kinds(table, schema.columns, schema.missing_values, peers);
  std::ranges::move(inferred.notes, std::back_inserter(learnt.remarks));
  learnt.doubts = std::move(inferred.doubts);
  for (TableColumn& column : schema.columns) {
    if (column.date) {
      column.bins = 0;  // those that data.scale says of all columns: a date has parts
      column.keeps_number = true;
    }
    const WindowOptions& windows = options.windows;
    // data.columns says only how it is read.
    const bool orders = windows.any() && column.name == windows.time;
    if (orders && std::ranges::count(windows.future, column.name) == 0) column.kind = ColumnKind::kIgnored;
  }
  name_missing_numbers(schema);
  peers.agree([&] {
    refuse_doubts(learnt, table, options);
    check_label(options, schema.columns);
  });
  learnt.scan = scan_columns(table, schema, options, held, peers);
  peers.agree([&] {
    learn_columns(learnt, options);
    check_learnt(table, schema, learnt.scan);
    remark_on_dates(learnt, declared);
    refuse_doubts(learnt, table, options);
  });
  return learnt;
}

}  // namespace lockstep
