// A schema turns the cells of a table into features: for each column its kind, and what encoding it needs.
// Learning it takes up to three passes over the training data, each shared by all ranks. The first
// (infer_kinds) guesses the kind of each column that the config leaves open. The second collects statistics
// of numbers, and counts of texts, for the columns as they are then declared. With a validation share there
// is a third: only after the second the number of each record is known, and with it which records are held
// out, whose values must not be learnt from.
//
// Categories are kept in order of their counts, data.vocabulary of them at most; rarer ones become the
// category of unknown values. A missing value is a category of its own. Classes of a label are all kept, also
// those that only held-out records have, and are sorted, so that class numbers do not depend on counts.
//
// match_columns() then finds the columns of any table, that of the training data or another, by name, or by
// position if the table has no header.
#include "learn_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/infer.h"
#include "lockstep/data/table/number.h"

namespace lockstep {
namespace {

// More categories are counted nowhere: they are for hashing.
constexpr Index kMaxCategories = 1'000'000;

bool needs_quantiles(const TableColumn& column) {
  return column.is_feature() && column.kind == ColumnKind::kNumeric &&
         (column.bins > 0 || column.scale == Scale::kRobust);
}

// `quantiles`: numbers that a column keeps for them, if it needs any.
ColumnWants wants_of(const TableColumn& column, Index quantiles) {
  if (column.kind != ColumnKind::kCategorical) {
    return {.logarithm = column.scale == Scale::kLog, .quantiles = needs_quantiles(column) ? quantiles : 0};
  }
  // A hashed column needs no counts: it only has to be text.
  const bool counts = column.label || column.encoding != Encoding::kHash;
  // A class is one wherever it occurs.
  return {.max_texts = counts ? kMaxCategories : 1, .of_all = column.label};
}

// Classes in an order that people expect: by size if they are numbers, else by their letters.
void sort_classes(std::vector<std::string>& values) {
  const bool numbers =
      std::ranges::all_of(values, [](const std::string& value) { return parse_number(value).has_value(); });
  std::ranges::sort(values, [numbers](const std::string& a, const std::string& b) {
    const double x = numbers ? *parse_number(a) : 0;
    const double y = numbers ? *parse_number(b) : 0;
    return x != y ? x < y : a < b;
  });
}

void learn_categories(TableColumn& column, const ColumnSummary& summary, Index vocabulary,
                      std::vector<std::string>& remarks) {
  if (!column.label && column.encoding == Encoding::kHash) return;
  ValueCounts counts = summary.text_counts;
  // A category of their own; of several labels, one that is missing is no class.
  if (summary.missing > 0 && !column.label) counts.add("", summary.missing);
  if (counts.overflowed()) {
    throw ConfigError(fmt::format(
        "column {0} has more than {1} different values: hash it (data.columns = [\"{2}: hash(1024)\"]) or "
        "ignore it (data.ignore)",
        in_quotes(column.name), with_commas(kMaxCategories), excerpt(column.name)));
  }
  Index known = 0;
  Index all = 0;
  for (const ValueCounts::Entry& entry : counts.by_count()) {
    all += entry.count;
    if (!column.label && std::ssize(column.values) >= vocabulary) continue;
    known += entry.count;
    column.values.push_back(entry.text);
  }
  if (column.label) sort_classes(column.values);
  if (known == all) return;
  remarks.push_back(fmt::format(
      "column {} has {} categories, more than data.vocabulary = {}: {} of {} records have one of the "
      "others",
      in_quotes(column.name), with_commas(counts.distinct()), vocabulary, with_commas(all - known),
      with_commas(all)));
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

void check_learnt(const TableText& table, const TableSchema& schema, const Scan& scan) {
  if (scan.good == 0) {
    throw DataError(fmt::format("'{}' holds no records{}", table.text.files.front().path,
                                scan.bad > 0   ? fmt::format(" but {} bad ones", with_commas(scan.bad))
                                : table.header ? ", only a header"
                                               : ""));
  }
  if (schema.features() == 0) {
    throw DataError(fmt::format("no column of '{}' is left as a feature (its columns: {})",
                                table.text.files.front().path, listed(table.names)));
  }
}

}  // namespace

LearntSchema learn_schema(const TableText& table, const TableOptions& options, const HoldOut& held,
                          PeerGroup& peers) {
  LearntSchema learnt;
  learnt.remarks = table.warnings;
  TableSchema& schema = learnt.schema;
  schema.missing_values = options.missing_values;
  peers.agree([&] {
    if (options.label.empty()) {
      throw ConfigError(
          fmt::format("data.label is missing: name the column to learn (of '{}': {}); 'trainer inspect FILE "
                      "--label NAME' writes a whole [data] section",
                      table.text.files.front().path, listed(table.names)));
    }
    schema.columns = declare_columns(options, table.names);
  });
  Remarks inferred = infer_kinds(table, schema.columns, schema.missing_values, peers);
  std::ranges::move(inferred.notes, std::back_inserter(learnt.remarks));
  learnt.doubts = std::move(inferred.doubts);
  for (TableColumn& column : schema.columns) {
    if (!column.date) continue;
    column.bins = 0;  // those that data.scale says of all columns: a date has parts
    column.keeps_number = true;
  }
  if (options.strict && !learnt.doubts.empty()) {
    peers.agree([&] {
      throw DataError(fmt::format("{} (data.strict = true): {}; say what it is in [data]",
                                  in_quotes(table.text.files.front().path), fmt::join(learnt.doubts, "; ")));
    });
  }

  std::vector<ColumnWants> wants;
  const Index kept = kept_for_quantiles(std::ranges::count_if(schema.columns, needs_quantiles));
  for (const TableColumn& column : schema.columns) wants.push_back(wants_of(column, kept));
  const std::vector<RowColumn> columns = match_columns(table, schema, true);
  ScanRequest request{.table = table,
                      .columns = columns,
                      .wants = wants,
                      .missing = schema.missing_values,
                      .bad = {.action = options.on_bad_record, .most = options.max_bad_share}};
  learnt.scan = scan_table(request, peers);
  if (held.any()) {
    // The table is scanned once more, now that the number of each record is known.
    std::vector<Index> first{0};
    for (const Index rows : learnt.scan.chunk_rows) first.push_back(first.back() + rows);
    request.counts = [&](std::size_t chunk, Index position) { return held.leaves(first[chunk] + position); };
    learnt.scan = scan_table(request, peers);
  }
  peers.agree([&] {
    for (std::size_t i = 0; i < schema.columns.size(); ++i) {
      TableColumn& column = schema.columns[i];
      const ColumnSummary& summary = learnt.scan.columns[i];
      column.missing = summary.missing;
      column.numbers = summary.numbers;
      if (needs_quantiles(column)) learn_quantiles(column, summary.quantiles.sorted());
      if (column.kind == ColumnKind::kCategorical) {
        learn_categories(column, summary, options.vocabulary, learnt.remarks);
      }
    }
    check_learnt(table, schema, learnt.scan);
  });
  return learnt;
}

namespace {

// The column of the table for each of the schema, the number of columns for none. Without a header the
// position decides; a table to predict from may come without its labels and weights.
std::vector<std::size_t> find_columns(const TableText& table, const TableSchema& schema, bool labels) {
  std::vector<std::size_t> found;
  if (table.header) {
    std::unordered_map<std::string_view, std::size_t> number_of;  // index of each column, by its name
    for (std::size_t i = 0; i < table.names.size(); ++i) number_of.emplace(table.names[i], i);
    for (const TableColumn& column : schema.columns) {
      const auto position = number_of.find(column.name);
      found.push_back(position == number_of.end() ? table.names.size() : position->second);
    }
    return found;
  }
  const std::size_t all = schema.columns.size();
  const auto is_known = [](const TableColumn& column) { return column.label || column.weight; };
  const std::size_t without = all - static_cast<std::size_t>(std::ranges::count_if(schema.columns, is_known));
  const std::size_t names = table.names.size();
  if (names != all && (labels || names != without)) {
    throw DataError(fmt::format(
        "'{}' has {} columns and no header, expected {}{}", table.text.files.front().path, names, all,
        labels ? ""
               : fmt::format(" (or {} without labels{})", without, schema.weighted() ? " and weights" : "")));
  }
  std::size_t next = 0;
  for (const TableColumn& column : schema.columns) {
    found.push_back(is_known(column) && names != all ? names : next++);
  }
  return found;
}

Reading reading_of(const TableColumn& column) {
  if (column.weight) return Reading::kWeight;
  return column.kind == ColumnKind::kNumeric ? Reading::kNumber : Reading::kText;
}

}  // namespace

std::vector<RowColumn> match_columns(const TableText& table, const TableSchema& schema, bool labels) {
  std::vector<RowColumn> matched(table.names.size());
  const std::vector<std::size_t> positions = find_columns(table, schema, labels);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const TableColumn& column = schema.columns[i];
    if (column.kind == ColumnKind::kIgnored || ((column.label || column.weight) && !labels)) continue;
    if (positions[i] == table.names.size()) {
      const std::string nearest = nearest_name(column.name, table.names);
      throw DataError(
          fmt::format("'{}' has no column {}, {}{}; its columns: {}", table.text.files.front().path,
                      in_quotes(column.name),
                      column.label    ? "the label"
                      : column.weight ? "the weights of its records (data.weight)"
                                      : "which the model takes",
                      nearest.empty() ? "" : fmt::format(" (did {} mean that?)", in_quotes(nearest)),
                      listed(table.names)));
    }
    const bool one_label = schema.labels() == 1;
    RowColumn& row = matched[positions[i]];
    row = row_column(column, reading_of(column), i);
    row.required = column.label && one_label;
    row.one_of = column.label && !one_label;
  }
  return matched;
}

}  // namespace lockstep
