#include "chart_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "html.h"
#include "kept_points.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

std::string short_or_count(double value) {
  return value == std::floor(value) ? count_text(value) : short_number(value);
}

std::string show_value(double value, const Bars& bars) {
  if (bars.seconds) return fmt::format("{:.5g} s", value);
  return bars.percent ? fmt::format("{:.1f} %", value) : short_or_count(value);
}

std::string point_json(const PointSeries& series, std::size_t max_points) {
  constexpr int kDigits = 6;
  const std::vector<std::size_t> points = kept_points(series.y, max_points);
  return fmt::format(R"({{"label":{},"style":"{}","x":{},"y":{}}})", json_text(series.label), series.style,
                     json_numbers(series.x, points, kDigits), json_numbers(series.y, points, kDigits));
}

}  // namespace

std::string json_numbers(const std::vector<double>& values, const std::vector<std::size_t>& points,
                         int digits) {
  std::string text = "[";
  for (const std::size_t point : points) {
    if (text.size() > 1) text += ',';
    text += std::isfinite(values[point]) ? fmt::format("{:.{}g}", values[point], digits) : "null";
  }
  return text + ']';
}

ChartPart point_chart(const PointChart& chart, const ChartLimits& limits) {
  HtmlTable table{.caption = chart.title, .head = {"", chart.x_name, chart.y_name}};
  std::vector<std::string> series;
  for (const PointSeries& each : chart.series) {
    series.push_back(point_json(each, limits.points));
    if (each.style == "guide") continue;
    for (const std::size_t point : kept_points(each.y, limits.rows))
      table.rows.push_back({each.label, short_number(each.x[point]), short_number(each.y[point])});
  }
  return {
      .section = chart.section,
      .title = chart.title,
      .summary = chart.summary,
      .json = fmt::format(R"({{"kind":"points","title":{},"x_name":{},"y_name":{},"unit":{},"series":[{}]}})",
                          json_text(chart.title), json_text(chart.x_name), json_text(chart.y_name),
                          chart.unit, fmt::join(series, ",")),
      .table = to_html(table)};
}

ChartPart bar_chart(const Bars& bars) {
  HtmlTable table{.caption = bars.title, .head = {bars.of_names}};
  table.head.insert(table.head.end(), bars.series.begin(), bars.series.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < bars.names.size(); ++i) {
    names.push_back(json_text(bars.names[i]));
    table.rows.push_back({bars.names[i]});
    for (const auto& values : bars.values) table.rows.back().push_back(show_value(values[i], bars));
  }
  std::vector<std::string> series;
  for (std::size_t i = 0; i < bars.series.size(); ++i) {
    series.push_back(fmt::format(R"({{"label":{},"y":[{:.6g}]}})", json_text(bars.series[i]),
                                 fmt::join(bars.values[i], ",")));
  }
  return {
      .section = bars.section,
      .title = bars.title,
      .summary = bars.summary.empty() ? bars.title + ", as stacked bars; the table below has the numbers."
                                      : bars.summary,
      .json = fmt::format(
          R"({{"kind":"bars","title":{},"percent":{},"across":{},"names":[{}],"series":[{}]}})",
          json_text(bars.title), bars.percent, bars.across, fmt::join(names, ","), fmt::join(series, ",")),
      .table = to_html(table)};
}

}  // namespace lockstep
