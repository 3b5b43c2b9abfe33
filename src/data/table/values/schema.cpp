#include "lockstep/data/table/values/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

std::string describe_missing(const TableColumn& column) {
  if (column.missing == 0) return "";
  if (column.label) return fmt::format(", {} missing do not count", with_commas(column.missing));
  return fmt::format(", {} missing become {}", with_commas(column.missing),
                     column.fill ? fmt::format("{:.4g}", *column.fill) : std::string("the mean"));
}

std::string describe_quartiles(const Quartiles& quartiles) {
  return fmt::format("median {:.4g}, quartiles {:.4g} and {:.4g}", quartiles.median, quartiles.lower,
                     quartiles.upper);
}

std::string describe_bins(const TableColumn& column) {
  const Index bins = column.bin_features();
  return fmt::format("{} bin{}{}{} from {:.4g} to {:.4g}", bins, bins == 1 ? "" : "s",
                     column.bin_edges == BinEdges::kLabel ? " by the label" : "",
                     column.scale == Scale::kLog ? " of its logarithm" : "", column.numbers.min,
                     column.numbers.max);
}

std::string describe_numbers(const TableColumn& column) {
  if (column.date) return column.date->term() + describe_missing(column);
  std::string scaled;
  switch (column.scale) {
    case Scale::kNone:
      scaled = "as it is";
      break;
    case Scale::kStandard:
      scaled = fmt::format("mean {:.4g}, deviation {:.4g}", column.numbers.mean, column.numbers.deviation());
      break;
    case Scale::kMinMax:
      scaled = fmt::format("from {:.4g} to {:.4g}", column.numbers.min, column.numbers.max);
      break;
    case Scale::kLog:
      scaled = fmt::format("logarithm, mean {:.4g}, deviation {:.4g}", column.numbers.mean,
                           column.numbers.deviation());
      break;
    case Scale::kRobust:
      scaled = describe_quartiles(column.quartiles.value_or(Quartiles{}));
      break;
  }
  if (column.bins > 0) {
    const std::string bins = describe_bins(column);
    scaled = column.keeps_number ? fmt::format("{}; {}", scaled, bins) : bins;
  }
  return fmt::format("number, {}{}", scaled, describe_missing(column));
}

std::string describe_categories(const TableColumn& column) {
  if (column.label) {
    return fmt::format(
        "{} classes{}", column.values.size(),
        column.missing == 0 ? "" : fmt::format(", {} missing do not count", with_commas(column.missing)));
  }
  if (column.encoding == Encoding::kHash) return fmt::format("hash into {} buckets", column.buckets);
  return fmt::format("{} of {} values and one for others",
                     column.encoding == Encoding::kOneHot ? "one-hot" : "index", column.values.size());
}

// A schema as JSON, "notation", "missing_values", "date", "quartiles" and "bins" of a column only where
// there are any, "by" only of bins by the label:
//
//   {"version": 1, "missing_values": [text, ...], "columns": [column, ...]}
//   column: {"name", "use": "feature" | "label" | "weight" | "ignore", "kind": "numeric", "scale", "missing",
//            "notation": {"decimal", "thousands", "prefix", "suffix"}, "missing_values": [text],
//            "date": {"form", "parts"}, "quartiles": [lower, median, upper], "count",
//            "bins": {"max", "keeps_number", "edges": [number], "by": "label"},
//            "missing_count", "mean", "deviation", "min", "max"}
//        or {..., "kind": "categorical", "encode": "onehot" | "index" | "hash", "buckets", "values": [text]}

using Json = nlohmann::ordered_json;

constexpr Index kVersion = 1;
constexpr Index kMaxWidth = Index{1} << 30;

template <class E>
struct Named {
  E value;
  const char* name;
};
constexpr std::array kScales{Named<Scale>{Scale::kNone, "none"}, Named<Scale>{Scale::kStandard, "standard"},
                             Named<Scale>{Scale::kMinMax, "minmax"}, Named<Scale>{Scale::kLog, "log"},
                             Named<Scale>{Scale::kRobust, "robust"}};
constexpr std::array kEncodings{Named<Encoding>{Encoding::kOneHot, "onehot"},
                                Named<Encoding>{Encoding::kIndex, "index"},
                                Named<Encoding>{Encoding::kHash, "hash"}};
constexpr std::array kBinEdges{Named<BinEdges>{BinEdges::kLabel, "label"}};
constexpr std::array kKinds{Named<ColumnKind>{ColumnKind::kNumeric, "numeric"},
                            Named<ColumnKind>{ColumnKind::kCategorical, "categorical"}};

template <class Names, class E>
const char* name_of(const Names& names, E value) {
  for (const auto& named : names) {
    if (named.value == value) return named.name;
  }
  return "";
}

template <class Names>
auto value_of(const Names& names, const Json& json) {
  const auto* const text = json.get_ptr<const std::string*>();
  for (const auto& named : names) {
    if (text != nullptr && *text == named.name) return named.value;
  }
  throw DataError(fmt::format("{} is not known", excerpt(json.dump())));
}

Json notation_json(const NumberNotation& notation) {
  return {{"decimal", std::string(1, notation.decimal)},
          {"thousands", notation.thousands == 0 ? "" : std::string(1, notation.thousands)},
          {"prefix", notation.prefix},
          {"suffix", notation.suffix}};
}

NumberNotation parse_notation(const Json& json) {
  const auto sign = [&json](const char* key, std::string_view known) {
    const auto text = json.at(key).get<std::string>();
    if (text.size() > 1 ||
        (text.empty() ? key == std::string_view("decimal") : known.find(text) == std::string_view::npos)) {
      throw DataError(fmt::format("{} is no {} sign", in_quotes(text), key));
    }
    return text.empty() ? char{0} : text.front();
  };
  return {.decimal = sign("decimal", ".,"),
          .thousands = sign("thousands", ",. '"),
          .prefix = json.at("prefix").get<std::string>(),
          .suffix = json.at("suffix").get<std::string>()};
}

Json date_json(const DateReading& date) {
  Json parts = Json::array();
  for (const DatePart part : date.parts) parts.push_back(name_of(date_parts(), part));
  return {{"form", name_of(date_forms(), date.form)}, {"parts", parts}};
}

DateReading parse_date_reading(const Json& json) {
  DateReading date{.form = value_of(date_forms(), json.at("form"))};
  for (const Json& part : json.at("parts")) date.parts.push_back(value_of(date_parts(), part));
  return date;
}

Json bins_json(const TableColumn& column) {
  Json json{{"max", column.bins}, {"keeps_number", column.keeps_number}, {"edges", column.edges}};
  if (column.bin_edges == BinEdges::kLabel) json["by"] = "label";
  return json;
}

Quartiles parse_quartiles(const Json& json) {
  const auto values = json.get<std::vector<double>>();
  if (values.size() != 3 || !std::ranges::is_sorted(values)) {
    throw DataError(fmt::format("{} are no quartiles", excerpt(json.dump())));
  }
  return {.lower = values[0], .median = values[1], .upper = values[2]};
}

void parse_bins(const Json& json, TableColumn& column) {
  column.bins = whole_number(json.at("max"));
  column.keeps_number = json.at("keeps_number").get<bool>();
  column.bin_edges = json.contains("by") ? value_of(kBinEdges, json.at("by")) : BinEdges::kQuantiles;
  column.edges = json.at("edges").get<std::vector<double>>();
  const Index edges = std::ssize(column.edges);
  const bool increase =
      std::ranges::adjacent_find(column.edges, std::greater_equal<>()) == column.edges.end();
  if (column.bins < 2 || column.bins > kMaxBins || edges < 1 || edges > column.bins + 1 || !increase) {
    throw DataError(fmt::format("column {} has {} bins with {} edges, which do not fit or do not increase",
                                in_quotes(column.name), column.bins, edges));
  }
}

Json schema_column_json(const TableColumn& column) {
  Json json{{"name", column.name}};
  if (column.kind == ColumnKind::kIgnored) {
    json["use"] = "ignore";
    return json;
  }
  json["use"] = column.label ? "label" : column.weight ? "weight" : "feature";
  json["kind"] = name_of(kKinds, column.kind);
  if (column.kind == ColumnKind::kNumeric) {
    json["scale"] = name_of(kScales, column.scale);
    json["missing"] = column.fill ? Json(*column.fill) : Json("mean");
    if (column.date) json["date"] = date_json(*column.date);
    if (column.notation) json["notation"] = notation_json(*column.notation);
    if (!column.missing_values.empty()) json["missing_values"] = column.missing_values;
    if (column.quartiles) {
      json["quartiles"] = {column.quartiles->lower, column.quartiles->median, column.quartiles->upper};
    }
    if (column.bins > 0) json["bins"] = bins_json(column);
    json["count"] = column.numbers.count;
    json["mean"] = column.numbers.mean;
    json["deviation"] = column.numbers.deviation();
    json["squares"] = column.numbers.squares;
    json["min"] = column.numbers.min;
    json["max"] = column.numbers.max;
  } else {
    json["encode"] = name_of(kEncodings, column.encoding);
    if (column.encoding == Encoding::kHash) json["buckets"] = column.buckets;
    json["values"] = column.values;
  }
  json["missing_count"] = column.missing;
  return json;
}

TableColumn parse_column(const Json& json) {
  TableColumn column{.name = json.at("name").get<std::string>()};
  const auto use = json.at("use").get<std::string>();
  column.label = use == "label";
  column.weight = use == "weight";
  column.kind = ColumnKind::kIgnored;
  if (use == "ignore") return column;
  column.kind = value_of(kKinds, json.at("kind"));
  column.missing = whole_number(json.at("missing_count"));
  if (column.kind == ColumnKind::kNumeric) {
    column.scale = value_of(kScales, json.at("scale"));
    if (json.at("missing") != "mean") column.fill = json.at("missing").get<double>();
    if (json.contains("date")) column.date = parse_date_reading(json.at("date"));
    if (json.contains("notation")) column.notation = parse_notation(json.at("notation"));
    if (json.contains("missing_values")) {
      column.missing_values = json.at("missing_values").get<std::vector<std::string>>();
    }
    if (json.contains("quartiles")) column.quartiles = parse_quartiles(json.at("quartiles"));
    if (column.scale == Scale::kRobust && !column.quartiles) throw DataError("robust numbers lack quartiles");
    if (json.contains("bins")) parse_bins(json.at("bins"), column);
    column.numbers = {.count = whole_number(json.at("count")),
                      .mean = json.at("mean").get<double>(),
                      .squares = json.at("squares").get<double>(),
                      .min = json.at("min").get<double>(),
                      .max = json.at("max").get<double>()};
  } else {
    column.encoding = value_of(kEncodings, json.at("encode"));
    if (column.encoding == Encoding::kHash) column.buckets = whole_number(json.at("buckets"));
    column.values = json.at("values").get<std::vector<std::string>>();
    if (column.encoding == Encoding::kHash && (column.buckets < 1 || column.buckets > kMaxWidth)) {
      throw DataError(fmt::format("column {} has {} buckets", in_quotes(column.name), column.buckets));
    }
  }
  return column;
}

}  // namespace

double bin_position_of(const TableColumn& column, double number) {
  return bin_position(column.edges, column.scale == Scale::kLog ? signed_log(number) : number);
}

double missing_position(const TableColumn& column) {
  // The mean of numbers with a logarithm is that of their logarithms.
  return column.fill ? bin_position_of(column, *column.fill)
                     : bin_position(column.edges, column.numbers.mean);
}

double signed_log(double x) {
  return std::copysign(std::log1p(std::abs(x)), x);
}

Index TableColumn::width() const {
  if (!is_feature()) return 0;
  if (date) return date->width();
  if (kind == ColumnKind::kNumeric) return bins == 0 ? 1 : bin_features() + (keeps_number ? 1 : 0);
  if (encoding == Encoding::kIndex) return 1;
  return encoding == Encoding::kHash ? buckets : std::ssize(values) + 1;
}

Index TableColumn::bin_features() const {
  return edges.empty() ? bins : std::max<Index>(std::ssize(edges) - 1, 1);
}

std::vector<FeatureRange> TableSchema::layout() const {
  std::vector<FeatureRange> layout;
  Index next = 0;
  for (const ColumnKind kind : {ColumnKind::kNumeric, ColumnKind::kCategorical}) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!columns[i].is_feature() || columns[i].kind != kind) continue;
      const Index width = columns[i].width();
      layout.push_back({.column = i, .features = {next, next + width}});
      next += width;
    }
  }
  return layout;
}

Index TableSchema::features() const {
  const std::vector<FeatureRange> all = layout();
  return all.empty() ? 0 : all.back().features.end;
}

Index TableSchema::labels() const {
  return std::ranges::count_if(columns, [](const TableColumn& column) { return column.label; });
}

bool TableSchema::weighted() const {
  return std::ranges::any_of(columns, &TableColumn::weight);
}

std::vector<std::string> TableSchema::describe() const {
  std::vector<std::string> lines;
  const auto text = [](const TableColumn& column) {
    return column.kind == ColumnKind::kNumeric ? describe_numbers(column) : describe_categories(column);
  };
  for (const FeatureRange& range : layout()) {
    const TableColumn& column = columns[range.column];
    const Range features = range.features;
    lines.push_back(fmt::format("{:>11}  {}: {}",
                                features.size() == 1
                                    ? fmt::format("{}", features.begin)
                                    : fmt::format("{}..{}", features.begin, features.end - 1),
                                excerpt(column.name), text(column)));
  }
  for (const TableColumn& column : columns) {
    if (column.label)
      lines.push_back(fmt::format("{:>11}  {}: {}", "label", excerpt(column.name), text(column)));
    if (column.weight) {
      lines.push_back(fmt::format("{:>11}  {}: from {:.4g} to {:.4g}, mean {:.4g}", "weight",
                                  excerpt(column.name), column.numbers.min, column.numbers.max,
                                  column.numbers.mean));
    }
  }
  return lines;
}

const char* to_string(Scale scale) {
  return name_of(kScales, scale);
}

std::string to_json(const TableSchema& schema) {
  Json json{{"version", kVersion}, {"missing_values", schema.missing_values}};
  for (const TableColumn& column : schema.columns) json["columns"].push_back(schema_column_json(column));
  return json.dump(1) + "\n";
}

TableSchema parse_schema(const std::string& text, const std::string& name) {
  try {
    const Json json = parse_json<Json>(text);
    if (json.at("version") != kVersion) {
      throw DataError(
          fmt::format("its version is {}, expected {}", excerpt(json.at("version").dump()), kVersion));
    }
    TableSchema schema{.missing_values = json.at("missing_values").get<std::vector<std::string>>()};
    for (const Json& column : json.at("columns")) schema.columns.push_back(parse_column(column));
    return schema;
  } catch (const std::exception& error) {
    throw DataError(
        fmt::format("'{}' is no schema of a table that this version wrote: {}", name, error.what()));
  }
}

std::optional<TableSchema> read_table_schema(const std::string& json) {
  if (json.empty() || parse_json<Json>(json).contains("format")) return std::nullopt;
  return parse_schema(json, "the schema of the model");
}

}  // namespace lockstep
