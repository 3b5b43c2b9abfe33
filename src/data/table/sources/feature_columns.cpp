#include "lockstep/data/table/sources/feature_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/record_source.h"
#include "sparse_source.h"

namespace lockstep {
namespace {

std::vector<FeatureColumn> numbered(Index features, Index first) {
  std::vector<FeatureColumn> columns;
  for (Index i = 0; i < features; ++i)
    columns.push_back({.name = fmt::format("{}", first + i), .features = {i, i + 1}});
  return columns;
}

// The past of each label, then the past of each column, feature after feature, and what is known ahead behind
// it, and last the columns that name the series.
std::vector<FeatureColumn> columns_of_windows(const TableSchema& schema) {
  const TableWindows& windows = *schema.windows;
  std::vector<FeatureColumn> columns;
  Index end = 0;
  const auto add = [&](const TableColumn& column, Index features) {
    columns.push_back({.name = column.name, .features = {end, end + features}});
    end += features;
  };
  for (const std::size_t label : schema.targets()) add(schema.columns[label], windows.window);
  for (const bool of_series : {false, true}) {
    for (const FeatureRange& range : schema.layout()) {
      const TableColumn& column = schema.columns[range.column];
      if (windows.names_series(column.name) != of_series) continue;
      add(column, range.features.size() * windows.values_of(column.name));
      if (of_series) columns.back().table = column;
    }
  }
  return columns;
}

}  // namespace

std::vector<FeatureColumn> feature_columns_of(const TableSchema& schema) {
  if (schema.windows) return columns_of_windows(schema);
  std::vector<FeatureColumn> columns;
  for (const FeatureRange& range : schema.layout()) {
    const TableColumn& column = schema.columns[range.column];
    columns.push_back({.name = column.name, .features = range.features, .table = column});
  }
  return columns;
}

namespace {

// The values at quantiles that are as far from each other, each once.
std::vector<Scalar> quantiles(std::vector<Scalar> found, Index points) {
  std::ranges::sort(found);
  std::vector<Scalar> distinct;
  std::unique_copy(found.begin(), found.end(), std::back_inserter(distinct));
  if (std::ssize(distinct) <= points) return distinct;
  std::vector<Scalar> values;
  for (Index i = 0; i < points; ++i) {
    const double place = static_cast<double>(i) / static_cast<double>(points - 1);
    const auto last = static_cast<double>(found.size() - 1);
    values.push_back(at(found, static_cast<Index>(std::floor(place * last + 0.5))));
  }
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// The features of a value of one column, as records have them.
class OneColumn {
 public:
  explicit OneColumn(const TableColumn& column)
      : schema_{.missing_values = {}, .columns = {column}}, encoder_(schema_, false) {}

  std::vector<Scalar> features_of(const Cell& cell) const {
    std::vector<std::byte> packed(static_cast<std::size_t>(encoder_.record_bytes()));
    std::vector<Scalar> features(static_cast<std::size_t>(encoder_.features()));
    Index unseen = 0;
    encoder_.pack({&cell, 1}, packed.data(), {&unseen, 1});
    encoder_.unpack(packed.data(), features.data(), nullptr);
    return features;
  }
  std::vector<Scalar> features_of(double number) const {
    return features_of(Cell{.is_number = true, .number = number});
  }

 private:
  TableSchema schema_;
  Encoder encoder_;
};

std::vector<Scalar> bins_of(TableColumn column, double number) {
  column.keeps_number = false;
  return OneColumn(column).features_of(number);
}

// The number that became the feature. What is left of a 0 after it was scaled and back is 0 again.
double number_of(const FeatureColumn& column, Scalar feature) {
  if (!column.table) return feature;
  const LabelScale scale = scale_of(*column.table);
  constexpr double kRounding = 1e-6;
  const double number = scale.undo(feature);
  return std::abs(number) < kRounding * scale.range ? 0 : number;
}

// The number that became these features.
double number_of_features(const FeatureColumn& column, std::span<const Scalar> features) {
  if (!column.table || column.table->bins == 0 || column.table->keeps_number)
    return number_of(column, features.front());
  double position = 0;  // each bin below the number has a 1
  for (const Scalar feature : features) position += static_cast<double>(feature);
  const double number = number_at(column.table->edges, position);
  return column.table->scale == Scale::kLog ? std::copysign(std::expm1(std::abs(number)), number) : number;
}

// Whether the features may be those of a missing number. A column of one number has the same for it and for
// that number, and so have columns that fill in a number that others have.
bool may_be_missing(const TableColumn& column, std::span<const Scalar> features) {
  const bool varies = column.numbers.max > column.numbers.min;
  if (column.missing == 0 && (column.fill || !varies)) return false;
  return std::ranges::equal(features, OneColumn(column).features_of(Cell{.missing = true}));
}

// The features of a number whose first one is known.
ColumnValue value_of_number(const FeatureColumn& column, Scalar feature) {
  const double number = number_of(column, feature);
  ColumnValue value{.text = fmt::format("{:.6g}", number), .features = {}};
  if (column.table && column.table->bins > 0) value.features = bins_of(*column.table, number);
  value.features.insert(value.features.begin(), feature);
  return value;
}

// Numbers of which there are only bins are known by their edges.
std::vector<ColumnValue> values_at_edges(const TableColumn& column, Index points) {
  std::vector<Scalar> edges;
  for (const double edge : column.edges) edges.push_back(static_cast<Scalar>(edge));
  std::vector<ColumnValue> values;
  for (const Scalar edge : quantiles(std::move(edges), points)) {
    const double number = column.scale == Scale::kLog ? LabelScale{.logarithm = true}.undo(edge) : edge;
    values.push_back({.text = fmt::format("{:.6g}", number), .features = bins_of(column, number)});
  }
  return values;
}

// The features of a date whose first one, that of its day, is known.
ColumnValue value_of_date(const TableColumn& column, Scalar feature) {
  double days = scale_of(column).undo(feature);
  // A feature tells no seconds apart.
  const double parts = std::ranges::count(column.date->parts, DatePart::kHour) == 0 ? 1 : 24 * 60;
  days = std::floor(days * parts + 0.5) / parts;
  ColumnValue value{.text = write_date(days), .features = OneColumn(column).features_of(days)};
  value.features.front() = feature;
  return value;
}

std::vector<ColumnValue> categories_of(const TableColumn& column, Index points) {
  const OneColumn encoded(column);
  std::vector<ColumnValue> values;
  for (const std::string& text : column.values) {
    if (std::ssize(values) == points) break;
    values.push_back(
        {.text = text.empty() ? "(missing)" : text, .features = encoded.features_of(Cell{.text = text})});
  }
  return values;
}

void refuse_unordered(const FeatureColumn& column) {
  if (!column.table) {
    if (column.features.size() == 1) return;
    throw ConfigError(
        "column {} has {} features, one for each position of a window: how the prediction depends on its "
        "value is no one curve",
        in_quotes(column.name), column.features.size());
  }
  const TableColumn& table = *column.table;
  error_if(table.is_hashed(),
           "column {} is hashed, so the model does not know its values: encode it by onehot or index to see "
           "how the prediction depends on them",
           in_quotes(column.name));
  if (table.date && table.date->parts.front() != DatePart::kDay) {
    throw ConfigError("column {} is read as {}: only dates whose first part is the day can be put in order",
                      in_quotes(column.name), table.date->term());
  }
}

}  // namespace

std::vector<FeatureColumn> feature_columns(const std::string& schema, Index features) {
  std::vector<FeatureColumn> columns;
  if (const std::optional<TableSchema> table = read_table_schema(schema)) {
    columns = feature_columns_of(*table);
  } else {
    const std::optional<SparseSchema> sparse = read_sparse_schema(schema);
    columns = numbered(features, sparse ? sparse->first_index : 0);
  }
  const Index found = columns.empty() ? 0 : columns.back().features.end;
  if (found == features) return columns;
  throw DataError("the schema of the model has {} features, but the model takes {}", found, features);
}

std::vector<ColumnValue> column_values(const FeatureColumn& column, std::vector<Scalar> found, Index points) {
  refuse_unordered(column);
  if (column.table && column.table->kind == ColumnKind::kCategorical)
    return categories_of(*column.table, points);
  if (column.table && column.table->bins > 0 && !column.table->keeps_number)
    return values_at_edges(*column.table, points);
  std::vector<ColumnValue> values;
  for (const Scalar feature : quantiles(std::move(found), points)) {
    if (column.table && column.table->date) {
      values.push_back(value_of_date(*column.table, feature));
    } else {
      values.push_back(value_of_number(column, feature));
    }
  }
  return values;
}

std::string value_text(const FeatureColumn& column, std::span<const Scalar> features) {
  if (!column.table || column.table->kind == ColumnKind::kNumeric) {
    const bool is_date = column.table && column.table->date;
    if (!is_date) {
      const std::string number = fmt::format("{:.5g}", number_of_features(column, features));
      return column.table && may_be_missing(*column.table, features) ? "(missing or " + number + ")" : number;
    }
    if (column.table->date->parts.front() != DatePart::kDay) return "";
    return value_of_date(*column.table, features.front()).text;
  }
  const TableColumn& table = *column.table;
  if (table.is_hashed()) return "";
  // 0 stands for a value that training has not seen.
  const Index number = table.encoding == Encoding::kIndex
                           ? static_cast<Index>(features.front())
                           : std::ranges::max_element(features) - features.begin();
  if (number < 1 || number > std::ssize(table.values)) return "(unknown)";
  const std::string& text = at(table.values, number - 1);
  return text.empty() ? "(missing)" : text;
}

std::vector<TargetLabel> target_labels(const TableSchema& schema) {
  std::vector<TargetLabel> labels;
  for (const std::size_t i : schema.targets()) {
    const TableColumn& column = schema.columns[i];
    if (!schema.windows) labels.push_back({.name = column.name, .classes = column.values});
    for (Index step = 1; schema.windows && step <= schema.windows->horizon; ++step)
      labels.push_back({.name = fmt::format("{}+{}", column.name, step)});
  }
  return labels;
}

std::vector<TargetLabel> target_labels(const RecordSource& source) {
  return source.vocabulary() ? std::vector<TargetLabel>() : read_target_labels(source.schema());
}

std::vector<TargetLabel> read_target_labels(const std::string& json) {
  if (json.empty()) return {};
  if (const std::optional<TableSchema> table = read_table_schema(json)) return target_labels(*table);
  const std::optional<SparseSchema> sparse = read_sparse_schema(json);
  if (!sparse) return {};
  TargetLabel label{.name = "label"};
  for (const double value : sparse->classes) label.classes.push_back(fmt::format("{}", value));
  return {label};
}

}  // namespace lockstep
