// A schema as JSON, "notation", "missing_values", "date", "quartiles" and "bins" of a column only where
// there are any, "by" only of bins by the label, "before" only of dates whose config says it, "fold_case"
// only where it is true:
//
//   {"version": 1, "missing_values": [text, ...], "columns": [column, ...],
//    "windows": {"window", "horizon", "series": [name], "future": [name], "steps": [text]}}, these only where
//    there are any
//   column: {"name", "use": "feature" | "label" | "weight" | "ignore", "kind": "numeric", "scale", "missing",
//            "notation": {"decimal", "thousands", "prefix", "suffix"}, "missing_values": [text],
//            "date": {"form", "parts", "before"}, "quartiles": [lower, median, upper], "count",
//            "bins": {"max", "keeps_number", "edges": [number], "by": "label"},
//            "missing_count", "mean", "deviation", "min", "max"}
//        or {..., "kind": "categorical", "encode": "onehot" | "index" | "hash", "buckets", "fold_case",
//            "values": [text]}
//
// pass_column() lists the fields of a column once, for both ways.
#include <algorithm>
#include <functional>
#include <type_traits>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr Index kVersion = 1;
constexpr Index kMaxWidth = Index{1} << 30;

constexpr Named<Scale> kScales[]{{Scale::kNone, "none"},
                                 {Scale::kStandard, "standard"},
                                 {Scale::kMinMax, "minmax"},
                                 {Scale::kLog, "log"},
                                 {Scale::kRobust, "robust"}};
constexpr Named<Encoding> kEncodings[]{
    {Encoding::kOneHot, "onehot"}, {Encoding::kIndex, "index"}, {Encoding::kHash, "hash"}};
constexpr Named<BinEdges> kBinEdges[]{{BinEdges::kLabel, "label"}};
constexpr Named<ColumnKind> kKinds[]{{ColumnKind::kNumeric, "numeric"},
                                     {ColumnKind::kCategorical, "categorical"}};

template <class Names>
auto value_of(const Names& names, const Json& json) {
  const auto* const text = json.get_ptr<const std::string*>();
  for (const auto& named : names) {
    if (text != nullptr && *text == named.name) return named.value;
  }
  throw DataError("{} is not known", excerpt(json.dump()));
}

// The fields of an object: each call puts one into JSON, or takes it out.
class Fields {
 public:
  Fields(Json& json, bool reads) : json_(json), reads_(reads) {}

  template <class T>
  void operator()(const char* key, T& value) const {
    if (!reads_) {
      json_[key] = value;
    } else if constexpr (std::is_same_v<T, Index>) {
      value = whole_number(json_.at(key));
    } else {
      value = json_.at(key).template get<T>();
    }
  }
  template <class E, class Names>
  void operator()(const char* key, E& value, const Names& names) const {
    if (reads_) {
      value = value_of(names, json_.at(key));
    } else {
      json_[key] = word_of(names, value);
    }
  }
  // Whether a field is there that may be missing.
  bool has(const char* key, bool given) const { return reads_ ? json_.contains(key) : given; }
  Fields object(const char* key) const { return {json_[key], reads_}; }

 private:
  Json& json_;
  bool reads_;
};

void pass_notation(const Fields& fields, NumberNotation& notation) {
  const auto pass_sign = [&fields](const char* key, std::string_view known, char& sign) {
    std::string text = sign == 0 ? "" : std::string(1, sign);
    fields(key, text);
    error_if<DataError>(text.size() > 1 || (text.empty() ? key == std::string_view("decimal")
                                                         : known.find(text) == std::string_view::npos),
                        "{} is no {} sign", in_quotes(text), key);
    sign = text.empty() ? char{0} : text.front();
  };
  pass_sign("decimal", ".,", notation.decimal);
  pass_sign("thousands", ",. '", notation.thousands);
  fields("prefix", notation.prefix);
  fields("suffix", notation.suffix);
}

void pass_date(const Fields& fields, DateReading& date) {
  fields("form", date.form, kDateForms);
  Json parts = Json::array();
  for (const DatePart part : date.parts) parts.push_back(word_of(kDateParts, part));
  fields("parts", parts);
  date.parts.clear();
  for (const Json& part : parts) date.parts.push_back(value_of(kDateParts, part));
  if (!fields.has("before", date.before.has_value())) return;
  Index before = date.before.value_or(0);
  fields("before", before);
  date.before = before;
}

void pass_quartiles(const Fields& fields, Quartiles& quartiles) {
  std::vector<double> values{quartiles.lower, quartiles.median, quartiles.upper};
  fields("quartiles", values);
  error_if<DataError>(values.size() != 3 || !std::ranges::is_sorted(values), "{} are no quartiles",
                      excerpt(Json(values).dump()));
  quartiles = {.lower = values[0], .median = values[1], .upper = values[2]};
}

void pass_bins(const Fields& fields, TableColumn& column) {
  fields("max", column.bins);
  fields("keeps_number", column.keeps_number);
  fields("edges", column.edges);
  if (fields.has("by", column.bin_edges == BinEdges::kLabel)) fields("by", column.bin_edges, kBinEdges);
  const Index edges = std::ssize(column.edges);
  const bool increase =
      std::ranges::adjacent_find(column.edges, std::greater_equal<>()) == column.edges.end();
  if (column.bins < 2 || column.bins > kMaxBins || edges < 1 || edges > column.bins + 1 || !increase) {
    throw DataError("column {} has {} bins with {} edges, which do not fit or do not increase",
                    in_quotes(column.name), column.bins, edges);
  }
}

void pass_number(const Fields& fields, TableColumn& column) {
  fields("scale", column.scale, kScales);
  Json missing = column.fill ? Json(*column.fill) : Json("mean");
  fields("missing", missing);
  column.fill = missing == "mean" ? std::nullopt : std::optional(missing.get<double>());
  const auto given = [](auto& value) -> auto& {
    return value ? *value : value.emplace();
  };
  if (fields.has("date", column.date.has_value())) pass_date(fields.object("date"), given(column.date));
  if (fields.has("notation", column.notation.has_value()))
    pass_notation(fields.object("notation"), given(column.notation));
  if (fields.has("quartiles", column.quartiles.has_value())) pass_quartiles(fields, given(column.quartiles));
  if (column.scale == Scale::kRobust && !column.quartiles) throw DataError("robust numbers lack quartiles");
  if (fields.has("bins", column.bins > 0)) pass_bins(fields.object("bins"), column);
  fields("count", column.numbers.count);
  fields("mean", column.numbers.mean);
  double deviation = column.numbers.deviation();  // for people who read the file
  if (fields.has("deviation", true)) fields("deviation", deviation);
  fields("squares", column.numbers.squares);
  fields("min", column.numbers.min);
  fields("max", column.numbers.max);
}

void pass_column(const Fields& fields, TableColumn& column) {
  fields("name", column.name);
  std::string use = column.kind == ColumnKind::kIgnored ? "ignore"
                    : column.label                      ? "label"
                    : column.weight                     ? "weight"
                                                        : "feature";
  fields("use", use);
  column.label = use == "label";
  column.weight = use == "weight";
  if (use == "ignore") {
    column.kind = ColumnKind::kIgnored;
    return;
  }
  fields("kind", column.kind, kKinds);
  if (fields.has("missing_values", !column.missing_values.empty()))
    fields("missing_values", column.missing_values);
  if (column.kind == ColumnKind::kNumeric) {
    pass_number(fields, column);
  } else {
    fields("encode", column.encoding, kEncodings);
    if (column.encoding == Encoding::kHash) fields("buckets", column.buckets);
    if (fields.has("fold_case", column.fold_case)) fields("fold_case", column.fold_case);
    fields("values", column.values);
    if (column.encoding == Encoding::kHash && (column.buckets < 1 || column.buckets > kMaxWidth))
      throw DataError("column {} has {} buckets", in_quotes(column.name), column.buckets);
  }
  fields("missing_count", column.missing);
}

void pass_windows(const Fields& fields, std::optional<TableWindows>& windows) {
  if (!fields.has("windows", windows.has_value())) return;
  if (!windows) windows.emplace();
  const Fields inner = fields.object("windows");
  inner("window", windows->window);
  inner("horizon", windows->horizon);
  inner("series", windows->series);
  inner("future", windows->future);
  inner("steps", windows->steps);
  if (windows->window < 1 || windows->horizon < 1) throw DataError("its windows have no positions");
}

}  // namespace

const char* to_string(Scale scale) {
  return word_of(kScales, scale);
}

std::string to_json(const TableSchema& schema) {
  Json json{{"version", kVersion}, {"missing_values", schema.missing_values}};
  for (TableColumn column : schema.columns) pass_column({json["columns"].emplace_back(), false}, column);
  std::optional<TableWindows> windows = schema.windows;
  pass_windows({json, false}, windows);
  return json.dump(1) + "\n";
}

TableSchema parse_schema(const std::string& text, const std::string& name) {
  try {
    Json json = parse_json<Json>(text);
    error_if<DataError>(json.at("version") != kVersion, "its version is {}, expected {}",
                        excerpt(json.at("version").dump()), kVersion);
    TableSchema schema{.missing_values = json.at("missing_values").get<std::vector<std::string>>()};
    for (Json& column : json.at("columns")) pass_column({column, true}, schema.columns.emplace_back());
    pass_windows({json, true}, schema.windows);
    return schema;
  } catch (const std::exception& error) {
    throw DataError("'{}' is no schema of a table that this version wrote: {}", name, error.what());
  }
}

std::optional<TableSchema> read_table_schema(const std::string& json) {
  if (json.empty() || parse_json<Json>(json).contains("format")) return std::nullopt;
  return parse_schema(json, "the schema of the model");
}

}  // namespace lockstep
