// Numbers are taken as doubles until they are features, as Encoder takes them: so what a large mean leaves of
// their digits is not lost. Neighbouring columns of numbers become features together. A missing number is NaN
// and a missing text any that stands for one; a text that is in no list is the category of unseen values.
#include "graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "lockstep/data/table/sources/feature_columns.h"

namespace lockstep {
namespace {

constexpr Index kEachRecord = 1;  // axis of the features

onnx::TensorProto_DataType onnx_type(const TableColumn& column) {
  if (column.date) return onnx::TensorProto::DOUBLE;
  if (column.kind == ColumnKind::kNumeric) return onnx::TensorProto::FLOAT;
  return column.is_hashed() ? onnx::TensorProto::INT64 : onnx::TensorProto::STRING;
}

TableColumn as_it_stands(TableColumn column) {
  column.fold_case = false;
  return column;
}

std::string help_of(const TableColumn& column) {
  if (column.date) {
    return column.date->form == DateForm::kTime
               ? "the time of day as a fraction of a day; NaN if it is missing"
               : "days since 1970-01-01 UTC, the time of day as a fraction; NaN if it is missing";
  }
  if (column.notation) {
    return fmt::format("the number that is written with {}; NaN if it is missing",
                       column.notation->describe());
  }
  if (column.kind == ColumnKind::kNumeric) return "a number; NaN if it is missing";
  if (column.fold_case) {
    return "a text in small letters, with one blank for several and none around it" +
           std::string(column.is_hashed() ? "; " + help_of(as_it_stands(column)) : "");
  }
  if (column.is_hashed()) {
    return fmt::format("the 64 bits of XXH3 of the text in UTF-8, modulo {}; of no text if it is missing",
                       column.buckets);
  }
  return fmt::format("a text, as it stands in the table; {} are known, and one category is for others",
                     column.values.size());
}

std::string doubt_of(const TableColumn& column) {
  if (!column.is_number() || column.scale == Scale::kLog) return "";
  if (!column.numbers.merge_in_single_precision()) return "";
  return fmt::format(
      "its numbers, {:.12g} to {:.12g}, lose what tells them apart where they become float32: subtract "
      "{:.12g} in the table before training",
      column.numbers.min, column.numbers.max, std::round(column.numbers.mean));
}

std::vector<const TableColumn*> feature_columns(const TableSchema& schema) {
  std::vector<const TableColumn*> columns;
  for (const FeatureRange& range : schema.layout()) columns.push_back(&schema.columns[range.column]);
  return columns;
}

std::string joined(OnnxGraph& graph, const std::vector<std::string>& parts) {
  return parts.size() == 1 ? parts.front() : graph.add("Concat", parts, {{"axis", kEachRecord}});
}

std::string add_signed_log(OnnxGraph& graph, const std::string& x) {
  const std::string size = graph.add("Add", {graph.add("Abs", {x}), graph.add_double(1)});
  return graph.add("Mul", {graph.add("Sign", {x}), graph.add("Log", {size})});
}

std::string add_smooth_clip(OnnxGraph& graph, const std::string& x) {
  constexpr double kClip = 3;
  const std::string part = graph.add("Mul", {x, graph.add_double(1 / kClip)});
  const std::string square = graph.add("Mul", {part, part});
  const std::string root = graph.add("Sqrt", {graph.add("Add", {square, graph.add_double(1)})});
  return graph.add("Div", {x, root});
}

// Features of numbers, double [N, columns], of which all are scaled in one way: with a logarithm, clipped, or
// neither.
std::string add_scaled(OnnxGraph& graph, const std::string& numbers,
                       const std::vector<const TableColumn*>& columns) {
  std::vector<double> shifts;
  std::vector<double> factors;
  std::vector<double> missing;
  bool logarithm = false;
  bool clips = false;
  for (const TableColumn* column : columns) {
    const LabelScale scale = scale_of(*column);
    shifts.push_back(scale.shift);
    factors.push_back(scale.factor());
    missing.push_back(scale.scaled(missing_number(*column)));
    logarithm = scale.logarithm;
    clips = scale.clips;
  }
  std::string x = logarithm ? add_signed_log(graph, numbers) : numbers;
  x = graph.add("Mul", {graph.add("Sub", {x, graph.add_doubles(shifts)}), graph.add_doubles(factors)});
  if (clips) x = add_smooth_clip(graph, x);
  const std::string is_missing = graph.add("IsNaN", {numbers});
  return graph.cast(graph.add("Where", {is_missing, graph.add_doubles(missing), x}),
                    onnx::TensorProto::FLOAT);
}

// Features of the bins of a column: double [N, 1] to float [N, bins]. With a single edge all are 0.
std::string add_bins(OnnxGraph& graph, const TableColumn& column) {
  std::vector<double> lows;
  std::vector<double> factors;
  for (std::size_t i = 0; i + 1 < column.edges.size(); ++i) {
    lows.push_back(column.edges[i]);
    factors.push_back(1 / (column.edges[i + 1] - column.edges[i]));
  }
  if (lows.empty()) {
    lows.push_back(column.edges.front());
    factors.push_back(0);
  }
  const std::string number = graph.cast(column.name, onnx::TensorProto::DOUBLE);
  const std::string x = column.scale == Scale::kLog ? add_signed_log(graph, number) : number;
  const std::string present =
      graph.add("Where", {graph.add("IsNaN", {number}), graph.add_double(missing_number(column)), x});
  const std::string steps =
      graph.add("Mul", {graph.add("Sub", {present, graph.add_doubles(lows)}), graph.add_doubles(factors)});
  const std::string features = graph.cast(steps, onnx::TensorProto::FLOAT);
  return graph.add("Clip", {features, graph.add_number(0), graph.add_number(1)});
}

bool alike_scales(const TableColumn& a, const TableColumn& b) {
  const LabelScale first = scale_of(a);
  const LabelScale second = scale_of(b);
  return first.logarithm == second.logarithm && first.clips == second.clips;
}

std::string add_numbers(OnnxGraph& graph, const std::vector<const TableColumn*>& columns) {
  std::vector<std::string> names;
  for (const TableColumn* column : columns) names.push_back(column->name);
  return add_scaled(graph, graph.cast(joined(graph, names), onnx::TensorProto::DOUBLE), columns);
}

// A missing date is on no day of the year, and in the middle of all cycles.
std::string add_date(OnnxGraph& graph, const TableColumn& column) {
  const std::string is_missing = graph.add("IsNaN", {column.name});
  std::vector<std::string> features;
  for (const DatePart part : column.date->parts) {
    if (part == DatePart::kDay) {
      features.push_back(add_scaled(graph, column.name, {&column}));
      continue;
    }
    if (part == DatePart::kDayOfYear) {
      features.push_back(add_day_of_year(graph, column.name));
      continue;
    }
    const auto [sine, cosine] = add_cycle(graph, column.name, part);
    for (const std::string& feature : {sine, cosine}) {
      features.push_back(graph.add("Where", {is_missing, graph.add_number(0), feature}));
    }
  }
  return joined(graph, features);
}

// The position of a text: 0 if training has not seen it, else that in the list of values, from 1 on. Texts
// for a missing value have the position of none, "".
std::string add_position(OnnxGraph& graph, const TableColumn& column,
                         const std::vector<std::string>& missing_texts) {
  const auto none = std::ranges::find(column.values, "");
  const double position_of_none =
      none == column.values.end() ? 0 : static_cast<double>(none - column.values.begin() + 1);
  std::vector<std::string> texts;
  std::vector<double> positions;
  std::set<std::string> known;
  const auto put = [&](const std::string& text, double position) {
    if (!known.insert(text).second) return;
    texts.push_back(text);
    positions.push_back(position);
  };
  put("", position_of_none);
  for (const auto* list : {&missing_texts, &column.missing_values}) {
    for (const std::string& text : *list) put(text, position_of_none);
  }
  double position = 0;
  for (const std::string& value : column.values) put(value, ++position);
  return graph.add_ml("LabelEncoder", {column.name},
                      {{"keys_strings", texts}, {"values_floats", positions}, {"default_float", 0.0}});
}

std::string add_category(OnnxGraph& graph, const TableColumn& column,
                         const std::vector<std::string>& missing_texts) {
  const bool hashed = column.is_hashed();
  const std::string position = hashed ? column.name : add_position(graph, column, missing_texts);
  if (column.encoding == Encoding::kIndex) return position;
  return graph.add_one_hot(position, hashed ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT,
                           column.width());
}

// The features of a date or a category.
std::string add_other(OnnxGraph& graph, const TableColumn& column, const TableSchema& schema) {
  return column.date ? add_date(graph, column)
                     : add_category(graph, column, missing_in_categories(schema.missing_values));
}

// The columns that a graph takes, each with the number of its values in a record.
std::vector<std::pair<const TableColumn*, Index>> input_columns(const TableSchema& schema) {
  std::vector<std::pair<const TableColumn*, Index>> columns;
  if (schema.windows) {
    for (const std::size_t i : schema.targets())
      columns.emplace_back(&schema.columns[i], schema.windows->window);
  }
  for (const TableColumn& column : schema.columns) {
    if (column.is_feature())
      columns.emplace_back(&column, schema.windows ? schema.windows->values_of(column.name) : 1);
  }
  return columns;
}

// The features of windows, in the order of PositionTable::write_features(): each value of a column becomes
// its features as that of a record would, and then those of one kind stand together.
std::string add_windows(OnnxGraph& graph, const TableSchema& schema) {
  std::map<std::string, std::string> features;  // by column
  for (const auto& [column, positions] : input_columns(schema)) {
    TableColumn one = *column;
    one.name = graph.reshape(column->name, {-1, 1});
    std::vector<std::string> parts;
    if (one.is_number()) {
      if (one.bins == 0 || one.keeps_number) parts.push_back(add_numbers(graph, {&one}));
      if (one.bins > 0) parts.push_back(add_bins(graph, one));
    } else {
      parts.push_back(add_other(graph, one, schema));
    }
    const Index width = column->label ? 1 : column->width();
    const std::string cut = graph.reshape(joined(graph, parts), {-1, positions, width});
    const std::string turned = width == 1 ? cut : graph.transpose(cut, {0, 2, 1});
    features[column->name] = graph.reshape(turned, {-1, positions * width});
  }
  std::vector<std::string> in_order;
  for (const FeatureColumn& column : feature_columns_of(schema)) in_order.push_back(features.at(column.name));
  return joined(graph, in_order);
}

// A graph has no calendar, so year and month are computed from the number of the day (Hinnant 2021,
// "chrono-Compatible Low-Level Date Algorithms", https://howardhinnant.github.io/date_algorithms.html). Years
// begin in March there, which puts the day that only leap years have at the end of a year. An era is 400 such
// years, after which the calendar repeats.

// A double for each record, [N, 1].
class Number {
 public:
  Number(OnnxGraph& graph, std::string value) : graph_(&graph), value_(std::move(value)) {}

  Number operator+(const Number& other) const { return add("Add", other.value_); }
  Number operator-(const Number& other) const { return add("Sub", other.value_); }
  Number operator*(const Number& other) const { return add("Mul", other.value_); }
  Number operator/(const Number& other) const { return add("Div", other.value_); }
  Number operator+(double constant) const { return add("Add", graph_->add_double(constant)); }
  Number operator-(double constant) const { return add("Sub", graph_->add_double(constant)); }
  Number operator*(double constant) const { return add("Mul", graph_->add_double(constant)); }
  Number operator/(double constant) const { return add("Div", graph_->add_double(constant)); }
  Number floor() const { return {*graph_, graph_->add("Floor", {value_})}; }
  Number modulo(double constant) const { return *this - (*this / constant).floor() * constant; }
  const std::string& value() const { return value_; }

 private:
  Number add(const char* operation, const std::string& other) const {
    return {*graph_, graph_->add(operation, {value_, other})};
  }

  OnnxGraph* graph_;
  std::string value_;
};

constexpr double kDaysToEra = 719468;  // from 0000-03-01 to 1970-01-01
constexpr double kDaysOfEra = 146097;
constexpr double kDaysTo1January = 306;  // from 1 March on
constexpr double kThursday = 4;          // 1970-01-01 was one

// Years of an era begin with 0, days of a year with 0 on 1 March.
struct MarchDate {
  Number year;
  Number day;
};

MarchDate march_date(const Number& whole_days) {
  const Number day = (whole_days + kDaysToEra).modulo(kDaysOfEra);
  const Number leap_days = (day / 1460).floor() - (day / 36524).floor() + (day / (kDaysOfEra - 1)).floor();
  const Number year = ((day - leap_days) / 365).floor();
  return {year, day - (year * 365 + (year / 4).floor() - (year / 100).floor())};
}

// Leap years from year 0 up to `year`, less one.
Number leap_years(const Number& year) {
  return (year / 4).floor() - (year / 100).floor() + (year / 400).floor();
}

// 0 in January.
Number month(const Number& whole_days) {
  const Number from_march = ((march_date(whole_days).day * 5 + 2) / 153).floor();
  return (from_march + 2).modulo(12);
}

// The share of the year that has passed.
Number share_of_year(const Number& days, const Number& whole_days) {
  const MarchDate date = march_date(whole_days);
  const Number next_year = (date.day / kDaysTo1January).floor();  // 1 in January and February, else 0
  const Number year = date.year + next_year;
  const Number leap_day = leap_years(year) - leap_years(year - 1);
  const Number length = leap_day + 365;
  const Number passed = date.day + leap_day + (365 - kDaysTo1January) - next_year * length;
  return (passed + (days - whole_days)) / length;
}

Number share_of_cycle(const Number& days, DatePart part) {
  const Number whole = days.floor();
  if (part == DatePart::kHour) return days - whole;
  if (part == DatePart::kWeekday) return (whole + kThursday).modulo(7) / 7;
  if (part == DatePart::kMonth) return month(whole) / 12;
  return share_of_year(days, whole);
}

}  // namespace

const char* to_string(onnx::TensorProto_DataType type) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
      return "float";
    case onnx::TensorProto::DOUBLE:
      return "double";
    case onnx::TensorProto::INT64:
      return "int64";
    default:
      return "string";
  }
}

std::vector<ColumnInput> column_inputs(const TableSchema& schema) {
  std::vector<ColumnInput> inputs;
  for (const auto& [column, positions] : input_columns(schema)) {
    const std::string help = help_of(*column);
    inputs.push_back({.name = column->name,
                      .type = onnx_type(*column),
                      .help = positions == 1
                                  ? help
                                  : fmt::format("of {} positions, the oldest first: {}", positions, help),
                      .positions = positions,
                      .as_is = !column->date && !column->notation && !column->is_hashed(),
                      .doubt = doubt_of(*column)});
  }
  return inputs;
}

std::string add_table_inputs(OnnxGraph& graph, const TableSchema& schema) {
  graph.begin_layer("columns");
  for (const ColumnInput& input : column_inputs(schema)) {
    graph.add_input(
        {.name = input.name, .sample = {{input.positions}}, .type = input.type, .help = input.help});
  }
  if (schema.windows) return add_windows(graph, schema);
  std::vector<std::string> features;
  std::vector<const TableColumn*> numbers;  // columns that are to become features together
  const auto add_together = [&] {
    if (!numbers.empty()) features.push_back(add_numbers(graph, numbers));
    numbers.clear();
  };
  for (const TableColumn* column : feature_columns(schema)) {
    const bool plain = column->is_number();
    const bool alike = numbers.empty() || alike_scales(*numbers.back(), *column);
    if (!plain || !alike) add_together();
    if (plain) {
      if (column->bins == 0 || column->keeps_number) numbers.push_back(column);
      if (column->bins == 0) continue;
      add_together();
      features.push_back(add_bins(graph, *column));
    } else {
      features.push_back(add_other(graph, *column, schema));
    }
  }
  add_together();
  return joined(graph, features);
}

std::string add_day_of_year(OnnxGraph& graph, const std::string& days) {
  // In this calendar 1 March is always as far from the year's beginning as in a leap year.
  const Number from_march = march_date(Number(graph, days).floor()).day;
  const Number day = (from_march + (static_cast<double>(kDaysOfYear) - kDaysTo1January)).modulo(kDaysOfYear);
  return graph.add_one_hot(day.value(), onnx::TensorProto::DOUBLE, kDaysOfYear);
}

std::pair<std::string, std::string> add_cycle(OnnxGraph& graph, const std::string& days, DatePart part) {
  const Number angle = share_of_cycle({graph, days}, part) * (2 * std::numbers::pi);
  // Not every runtime has a cosine of doubles.
  const std::string x = graph.cast(angle.value(), onnx::TensorProto::FLOAT);
  return {graph.add("Sin", {x}), graph.add("Cos", {x})};
}

}  // namespace lockstep
