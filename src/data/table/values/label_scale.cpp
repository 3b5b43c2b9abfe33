#include "lockstep/data/table/values/label_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

bool is_number_label(const TableColumn& column) {
  return column.label && column.kind == ColumnKind::kNumeric;
}

bool is_scaled_label(const TableColumn& column) {
  return is_number_label(column) && column.scale != Scale::kNone;
}

constexpr double kClip = 3;

// The last number before the limit is the largest that a feature can be undone to.
double undo_clip(Scalar clipped) {
  constexpr double kLast = kClip * (1 - 1e-6);
  const double y = std::clamp(static_cast<double>(clipped), -kLast, kLast);
  return y / std::sqrt(1 - (y / kClip) * (y / kClip));
}

// Half of the range stands for the distance of quartiles that are equal.
LabelScale robust_scale(const TableColumn& column) {
  const Quartiles quartiles = column.quartiles.value_or(Quartiles{});
  const double between = quartiles.upper - quartiles.lower;
  return {.shift = quartiles.median,
          .range = between > 0 ? between : (column.numbers.max - column.numbers.min) / 2,
          .clips = true};
}

}  // namespace

LabelScale scale_of(const TableColumn& column) {
  const NumberStats& stats = column.numbers;
  switch (column.scale) {
    case Scale::kNone:
      return {};
    case Scale::kMinMax:
      return {.shift = stats.min, .range = stats.max - stats.min};
    case Scale::kStandard:
    case Scale::kLog:
      return {.shift = stats.mean, .range = stats.deviation(), .logarithm = column.scale == Scale::kLog};
    case Scale::kRobust:
      return robust_scale(column);
  }
  return {};
}

double smooth_clip(double x) {
  return x / std::sqrt(1 + (x / kClip) * (x / kClip));
}

double LabelScale::apply(double number) const {
  const double straight = ((logarithm ? signed_log(number) : number) - shift) * factor();
  return clips ? smooth_clip(straight) : straight;
}

double missing_feature(const TableColumn& column) {
  const LabelScale scale = scale_of(column);
  // The mean of numbers with a logarithm is that of their logarithms.
  if (column.fill) return scale.apply(*column.fill);
  const double straight = (column.numbers.mean - scale.shift) * scale.factor();
  return scale.clips ? smooth_clip(straight) : straight;
}

Scalar LabelScale::undo(Scalar target) const {
  const double x = (clips ? undo_clip(target) : static_cast<double>(target)) * range + shift;
  return static_cast<Scalar>(logarithm ? std::copysign(std::expm1(std::abs(x)), x) : x);
}

std::vector<LabelScale> label_scales(const TableSchema& schema) {
  std::vector<LabelScale> scales;
  if (std::ranges::none_of(schema.columns, is_scaled_label)) return scales;
  // Numbers come first, then classes, as Encoder has them.
  for (const TableColumn& column : schema.columns) {
    if (is_number_label(column)) scales.push_back(scale_of(column));
  }
  scales.resize(static_cast<std::size_t>(schema.labels()));
  return scales;
}

std::vector<LabelScale> read_label_scales(const std::string& json) {
  const std::optional<TableSchema> schema = read_table_schema(json);
  return schema ? label_scales(*schema) : std::vector<LabelScale>();
}

std::string describe_scaled_label(const TableSchema& schema) {
  const auto scaled = std::ranges::find_if(schema.columns, is_scaled_label);
  if (scaled == schema.columns.end()) return "";
  return fmt::format("{}: {}", excerpt(scaled->name), to_string(scaled->scale));
}

}  // namespace lockstep
