#include "lockstep/data/table/values/schema.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "lockstep/base/text.h"
#include "lockstep/data/record_source.h"

namespace lockstep {
namespace {

bool is_scaled_label(const TableColumn& column) {
  return column.label && column.kind == ColumnKind::kNumeric && column.scale != Scale::kNone;
}

std::string describe_missing(const TableColumn& column) {
  if (column.missing == 0) return "";
  if (column.label) return fmt::format(", {} missing do not count", with_commas(column.missing));
  return fmt::format(", {} missing become {}", with_commas(column.missing),
                     column.fill ? fmt::format("{:.4g}", *column.fill) : std::string("the mean"));
}

std::string describe_bins(const TableColumn& column) {
  const Index bins = column.bin_features();
  return fmt::format("{} bin{}{}{} from {:.4g} to {:.4g}", bins, bins == 1 ? "" : "s",
                     column.bin_edges == BinEdges::kLabel ? " by the label" : "",
                     column.scale == Scale::kLog ? " of its logarithm" : "", column.numbers.min,
                     column.numbers.max);
}

std::string describe_scale(const TableColumn& column) {
  const NumberStats& numbers = column.numbers;
  switch (column.scale) {
    case Scale::kNone:
      return "as it is";
    case Scale::kMinMax:
      return fmt::format("from {:.4g} to {:.4g}", numbers.min, numbers.max);
    case Scale::kRobust: {
      const Quartiles quartiles = column.quartiles.value_or(Quartiles{});
      return fmt::format("median {:.4g}, quartiles {:.4g} and {:.4g}", quartiles.median, quartiles.lower,
                         quartiles.upper);
    }
    case Scale::kStandard:
    case Scale::kLog:
      return fmt::format("{}mean {:.4g}, deviation {:.4g}", column.scale == Scale::kLog ? "logarithm, " : "",
                         numbers.mean, numbers.deviation());
  }
  return "";
}

// Statistics of dates with a logarithm are of that.
std::string describe_span(const TableColumn& column) {
  if (column.numbers.count == 0) return "";
  const bool logarithm = column.scale == Scale::kLog;
  const auto written = [&](double x) {
    return write_date(logarithm ? std::copysign(std::expm1(std::abs(x)), x) : x, column.date->form);
  };
  return fmt::format(", {} to {}", written(column.numbers.min), written(column.numbers.max));
}

std::string describe_column(const TableColumn& column) {
  const std::string missing = describe_missing(column);
  if (column.kind != ColumnKind::kNumeric) {
    if (column.label) {
      const std::string yes =
          column.values.size() == 2 ? fmt::format(", yes is {}", in_quotes(column.values.back())) : "";
      return fmt::format("{} classes{}{}", column.values.size(), yes, missing);
    }
    if (column.encoding == Encoding::kHash) return fmt::format("hash into {} buckets", column.buckets);
    return fmt::format("{} of {} values and one for others",
                       column.encoding == Encoding::kOneHot ? "one-hot" : "index", column.values.size());
  }
  if (column.date) return column.date->term() + describe_span(column) + missing;
  std::string scaled = column.bins > 0 && !column.keeps_number ? "" : describe_scale(column);
  if (column.bins > 0) scaled += (scaled.empty() ? "" : "; ") + describe_bins(column);
  if (is_scaled_label(column)) {
    return fmt::format(
        "number, {}: {}{}; the loss is that of the scaled label, other measures are in its own "
        "units",
        to_string(column.scale), describe_scale(column), missing);
  }
  return fmt::format("number, {}{}", scaled, missing);
}

// The numbers of the columns that belong, in the order that records have them.
template <class Belongs>
std::vector<std::size_t> numbers_first(const std::vector<TableColumn>& columns, const Belongs& belongs) {
  std::vector<std::size_t> ordered;
  for (const ColumnKind kind : {ColumnKind::kNumeric, ColumnKind::kCategorical}) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].kind == kind && std::invoke(belongs, columns[i])) ordered.push_back(i);
    }
  }
  return ordered;
}

// Numbers scaled, and back.

constexpr double kClip = 3;

// The last number before the limit is the largest that a feature can be undone to.
double undo_clip(double clipped) {
  constexpr double kLast = kClip * (1 - 1e-6);
  const double y = std::clamp(clipped, -kLast, kLast);
  return y / std::sqrt(1 - (y / kClip) * (y / kClip));
}

}  // namespace

std::vector<std::string> missing_in_categories(const std::vector<std::string>& missing) {
  const std::vector<std::string> usual = TableOptions{}.missing_values;
  const auto is_in = [](const std::vector<std::string>& list) {
    return [&list](const std::string& text) { return std::ranges::count(list, text) > 0; };
  };
  std::vector<std::string> texts = missing;
  if (!std::ranges::all_of(usual, is_in(missing))) return texts;  // somebody wrote a list of their own
  std::erase_if(texts, [&](const std::string& text) { return !text.empty() && is_in(usual)(text); });
  return texts;
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
  for (const std::size_t i : numbers_first(columns, &TableColumn::is_feature)) {
    const Index width = columns[i].width();
    layout.push_back({.column = i, .features = {next, next + width}});
    next += width;
  }
  return layout;
}

std::vector<std::size_t> TableSchema::targets() const {
  return numbers_first(columns, &TableColumn::label);
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

bool TableSchema::is_nameless() const {
  Index number = 0;
  return std::ranges::all_of(
      columns, [&number](const TableColumn& column) { return column.name == fmt::format("c{}", ++number); });
}

std::vector<std::string> TableSchema::describe() const {
  std::vector<std::string> lines;
  for (const TableColumn& column : columns) {
    if (column.label)
      lines.push_back(fmt::format("{:>11}  {}: {}", "label", excerpt(column.name), describe_column(column)));
  }
  for (const FeatureRange& range : layout()) {
    const TableColumn& column = columns[range.column];
    const Range features = range.features;
    lines.push_back(fmt::format("{:>11}  {}: {}",
                                features.size() == 1
                                    ? fmt::format("{}", features.begin)
                                    : fmt::format("{}..{}", features.begin, features.end - 1),
                                excerpt(column.name), describe_column(column)));
  }
  for (const TableColumn& column : columns) {
    if (column.weight) {
      lines.push_back(fmt::format("{:>11}  {}: from {:.4g} to {:.4g}, mean {:.4g}", "weight",
                                  excerpt(column.name), column.numbers.min, column.numbers.max,
                                  column.numbers.mean));
    }
  }
  return lines;
}

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
    case Scale::kRobust: {
      // Half of the range stands for the distance of quartiles that are equal.
      const Quartiles quartiles = column.quartiles.value_or(Quartiles{});
      const double between = quartiles.upper - quartiles.lower;
      return {.shift = quartiles.median,
              .range = between > 0 ? between : (stats.max - stats.min) / 2,
              .clips = true};
    }
  }
  return {};
}

double smooth_clip(double x) {
  return x / std::sqrt(1 + (x / kClip) * (x / kClip));
}

double LabelScale::scaled(double x) const {
  const double straight = (x - shift) * factor();
  return clips ? smooth_clip(straight) : straight;
}

double missing_number(const TableColumn& column) {
  // The mean of numbers with a logarithm is that of their logarithms.
  if (!column.fill) return column.numbers.mean;
  return column.scale == Scale::kLog ? signed_log(*column.fill) : *column.fill;
}

double LabelScale::undo(double target) const {
  const double x = (clips ? undo_clip(target) : target) * range + shift;
  return logarithm ? std::copysign(std::expm1(std::abs(x)), x) : x;
}

int LabelScale::digits() const {
  constexpr int kOfSingle = 9;
  constexpr int kOfDouble = 17;
  constexpr double kNear = 8;  // up to here single precision costs a few of the bits that a target has
  if (range <= 0) return shift == static_cast<double>(static_cast<Scalar>(shift)) ? 0 : kOfDouble;
  const double ranges_from_zero = logarithm ? 1 / range : std::abs(shift) / range;
  if (ranges_from_zero <= kNear) return 0;
  return std::min(kOfDouble, kOfSingle + static_cast<int>(std::ceil(std::log10(ranges_from_zero))));
}

std::vector<LabelScale> label_scales(const TableSchema& schema) {
  std::vector<LabelScale> scales;
  if (std::ranges::none_of(schema.columns, is_scaled_label)) return scales;
  for (const std::size_t i : schema.targets()) {
    const TableColumn& column = schema.columns[i];
    scales.insert(scales.end(), schema.windows ? static_cast<std::size_t>(schema.windows->horizon) : 1,
                  column.kind == ColumnKind::kNumeric ? scale_of(column) : LabelScale{});
  }
  return scales;
}

std::vector<LabelScale> label_scales(const RecordSource& source) {
  return source.vocabulary() ? std::vector<LabelScale>() : read_label_scales(source.schema());
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
