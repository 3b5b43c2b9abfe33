// A schema turns the cells of a table into features: for each column its kind, and what encoding it needs.
// Learning it takes up to two passes over the training data, each shared by all ranks. The first guesses the
// kind of each column that the config leaves open (infer_kinds), keeps texts that others ask for, and numbers
// the records, which tells those that are held back, whose values must not be learnt from. The second
// collects statistics of numbers, and counts of texts, for the columns as they are then declared. Where it
// finds records that are bad by the kinds of their columns the others have other numbers, and there is a
// third. Where nothing is to be found out the first is left out.
//
// Categories are kept in order of their counts, data.vocabulary of them at most; rarer ones become the
// category of unknown values. A missing value is a category of its own. Classes of a label are all kept, also
// those that only held-out records have, and are in the order of ordered_classes(), for which held-out
// records count, too.
#include "encoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
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

// The second pass: the statistics that the columns need.
class Statistics {
 public:
  Statistics(TableText& table, const TableSchema& schema, const TableOptions& options, PeerGroup& peers)
      : table_(table),
        options_(options),
        peers_(peers),
        schema_(schema),
        columns_(match_columns(table, schema, true)) {
    // Samples of numbers are kept for quantiles, and of the label for bins by it.
    const auto is_sampled = [labels = std::ranges::any_of(schema.columns, needs_label)](const auto& column) {
      return needs_quantiles(column) || (labels && column.is_label_or_weight());
    };
    const Index kept = kept_for_quantiles(std::ranges::count_if(schema.columns, is_sampled));
    for (const TableColumn& column : schema.columns)
      wants_.push_back(wants_of(column, is_sampled(column) ? kept : 0));
  }

  // Whether the numbers of chunks say which records are sampled.
  bool samples() const {
    return std::ranges::any_of(wants_, [](const ColumnWants& wants) { return wants.quantiles > 0; });
  }

  // *Collective.* `chunk_rows`: the records of each chunk, where they have been counted.
  Scan scan(const HoldOut& held = {}, const std::vector<Index>& chunk_rows = {}) const {
    std::vector<Index> first{0};
    for (const Index rows : chunk_rows) first.push_back(first.back() + rows);
    ScanRequest request{.table = table_,
                        .columns = columns_,
                        .wants = wants_,
                        .missing = schema_.missing_values,
                        .bad = {.action = options_.on_bad_record, .most = options_.max_bad_share}};
    if (held.any()) {
      request.counts = [&](std::size_t chunk, Index position) {
        const Index id = first[chunk] + position;
        return id < first[chunk + 1] && held.leaves(id);
      };
    }
    Scan scan = scan_table(request, peers_);
    error_if<DataError>(
        !chunk_rows.empty() && (scan.good + scan.bad < first.back() || scan.good > first.back()),
        "'{}' changed since it was opened: its records are not those that were counted; files must stay as "
        "they are until the run is over",
        table_.text.files.front().path);
    return scan;
  }

 private:
  TableText& table_;
  const TableOptions& options_;
  PeerGroup& peers_;
  const TableSchema& schema_;
  std::vector<RowColumn> columns_;
  std::vector<ColumnWants> wants_;
};

// *Collective.* The statistics of the records that are not held back. `look`: the first pass.
Scan scan_divided(const Statistics& statistics, const Scan& look, const TableQuestions& questions,
                  TableRecords records) {
  std::vector<Index> chunk_rows;
  for (std::size_t i = 0; i < look.chunk_rows.size(); ++i)
    chunk_rows.push_back(look.chunk_rows[i] + look.chunk_bad[i]);
  // No record is bad, it is supposed; if some are they may be the reason for an error here.
  std::exception_ptr refused;
  HoldOut held;
  records.rows = look.good + look.bad;
  try {
    held = questions.divide(records);
  } catch (const Error&) {
    refused = std::current_exception();
  }
  Scan scan = statistics.scan(held, chunk_rows);
  if (scan.bad == 0 && refused) std::rethrow_exception(refused);
  if (scan.bad == 0) return scan;
  questions.texts.leave_out(scan.bad_positions);
  records.rows = scan.good;
  return statistics.scan(questions.divide(records), scan.chunk_rows);
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

Scan take_texts(TableText& table, const TableOptions& options, const std::vector<TableColumn>& columns,
                const std::string& name, ColumnTexts& texts, PeerGroup& peers) {
  Scan look = look_at_columns(table, columns, false, options.missing_values, peers, texts.find(table));
  texts.take(table, options, name, look);
  return look;
}

LearntSchema learn_schema(TableText& table, const TableOptions& options, const std::string& name,
                          const TableQuestions* questions, PeerGroup& peers) {
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
  const auto is_unknown = [](const TableColumn& column) { return column.kind == ColumnKind::kUnknown; };
  const bool divides = questions != nullptr && questions->divide;
  ColumnTexts none({});
  ColumnTexts& texts = questions == nullptr ? none : questions->texts;
  std::optional<Scan> look;
  if (divides || !texts.empty() || std::ranges::any_of(declared, is_unknown))
    look = take_texts(table, options, declared, name, texts, peers);
  Remarks inferred;
  peers.agree([&] {
    if (look) inferred = infer_kinds(table, schema.columns, *look);
  });
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
  const Statistics statistics(table, schema, options, peers);
  if (!look && statistics.samples() && peers.size() > 1)
    look = take_texts(table, options, declared, name, texts, peers);
  const TableRecords records{.name = name, .options = options, .columns = schema.columns, .texts = texts};
  learnt.scan = divides ? scan_divided(statistics, *look, *questions, records) : statistics.scan();
  if (!divides) texts.leave_out(learnt.scan.bad_positions);
  peers.agree([&] {
    learn_columns(learnt, options);
    check_learnt(table, schema, learnt.scan);
    remark_on_dates(learnt, declared);
    refuse_doubts(learnt, table, options);
  });
  return learnt;
}

}  // namespace lockstep
