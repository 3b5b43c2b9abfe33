#include "lockstep/data/table/values/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/bins.h"

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

}  // namespace lockstep
