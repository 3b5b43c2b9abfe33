#include "report_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chart_json.h"
#include "html.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Curve = ShownPredictions::Curve;
using Fit = ShownPredictions::Fit;

PointSeries diagonal(double from, double to, const std::string& label) {
  return {.label = label, .style = "guide", .x = {from, to}, .y = {from, to}};
}

std::string prefix(const std::vector<RunDescription>& runs, const RunDescription& run) {
  return runs.size() == 1 ? "" : run.short_name() + ", ";
}

// One run shows the curves of all classes; several show those of yes or no, which can be laid over each
// other.
std::vector<std::pair<std::string, const Curve*>> shown_curves(const std::vector<RunDescription>& runs) {
  std::vector<std::pair<std::string, const Curve*>> shown;
  for (const RunDescription& run : runs) {
    const std::vector<Curve>& curves = run.predictions.curves;
    if (runs.size() > 1 && curves.size() > 1) continue;
    for (const Curve& curve : curves)
      shown.emplace_back(fmt::format("{}class {}", prefix(runs, run), curve.name), &curve);
  }
  return shown;
}

void add_threshold_curves(const std::vector<RunDescription>& runs, const ChartLimits& limits,
                          std::vector<ChartPart>& parts) {
  PointChart roc{.section = "predictions",
                 .title = "ROC curves",
                 .summary = "ROC curves: ",
                 .x_name = "false positive rate",
                 .y_name = "true positive rate (recall)",
                 .unit = true};
  PointChart pr{.section = "predictions",
                .title = "Precision-recall curves",
                .summary = "Precision against recall, from the highest threshold to the lowest: ",
                .x_name = "recall",
                .y_name = "precision",
                .unit = true};
  const auto shown = shown_curves(runs);
  if (shown.empty()) return;
  for (const auto& [label, curve] : shown) {
    const std::string area = std::isfinite(curve->area) ? fmt::format(", area {:.4f}", curve->area) : "";
    roc.series.push_back({.label = label + area, .x = {0}, .y = {0}});
    PointSeries& points = roc.series.back();
    points.x.insert(points.x.end(), curve->false_positive_rate.begin(), curve->false_positive_rate.end());
    points.y.insert(points.y.end(), curve->recall.begin(), curve->recall.end());
    pr.series.push_back({.label = label, .x = curve->recall, .y = curve->precision});
    roc.summary += fmt::format("{}{}; ", label, area);
    pr.summary += label + "; ";
  }
  for (PointChart* chart : {&roc, &pr}) chart->summary += "the table below has the numbers.";
  roc.series.push_back(diagonal(0, 1, "by chance"));
  const ChartLimits each{.points = std::max<std::size_t>(limits.points / shown.size(), 50),
                         .rows = std::max<std::size_t>(limits.rows / shown.size(), 8)};
  parts.push_back(point_chart(roc, each));
  parts.push_back(point_chart(pr, each));
}

void add_reliability(const std::vector<RunDescription>& runs, const ChartLimits& limits,
                     std::vector<ChartPart>& parts) {
  PointChart chart{.section = "predictions",
                   .title = "Reliability: does what is predicted come true as often?",
                   .summary =
                       "Reliability: the share that came true against the predicted probability. On "
                       "the diagonal both are the same; below it the model is too sure.",
                   .x_name = "predicted probability",
                   .y_name = "share that came true",
                   .unit = true};
  for (const RunDescription& run : runs) {
    if (run.reliability.empty()) continue;
    chart.series.push_back({.label = prefix(runs, run) + run.reliability_split, .style = "both"});
    for (const ReliabilityPoint& point : run.reliability) {
      chart.series.back().x.push_back(point.predicted);
      chart.series.back().y.push_back(point.observed);
    }
  }
  if (chart.series.empty()) return;
  chart.series.push_back(diagonal(0, 1, "as predicted"));
  parts.push_back(point_chart(chart, limits));
}

// How many predictions each probability had: a point of the diagram that few have made says little.
void add_confidence(const RunDescription& run, const std::string& run_name, std::vector<ChartPart>& parts) {
  if (run.reliability.empty()) return;
  Bars bars{.section = "predictions",
            .title = fmt::format("Predictions by their probability{}", run_name),
            .of_names = "mean probability",
            .series = {"predictions"},
            .values = {{}}};
  for (const ReliabilityPoint& point : run.reliability) {
    bars.names.push_back(fmt::format("{:.2f}", point.predicted));
    bars.values.front().push_back(point.count);
  }
  parts.push_back(bar_chart(bars));
}

void add_residuals(const Fit& fit, const std::string& of_target, std::vector<ChartPart>& parts) {
  Bars bars{.section = "predictions",
            .title = fmt::format("Residuals (prediction - target){}", of_target),
            .of_names = "middle of the bin",
            .series = {"samples"},
            .values = {fit.residuals},
            .summary =
                "How often each residual occurs; the outer bins have all that lie beyond. The table "
                "below has the numbers."};
  const auto bins = static_cast<double>(fit.residuals.size());
  for (std::size_t i = 0; i < fit.residuals.size(); ++i) {
    const double middle = fit.width * ((2 * static_cast<double>(i) + 1) / bins - 1);
    bars.names.push_back(fmt::format("{:.3g}", std::abs(middle) < 1e-9 * fit.width ? 0 : middle));
  }
  parts.push_back(bar_chart(bars));
}

void add_fits(const std::vector<RunDescription>& runs, const ChartLimits& limits,
              std::vector<ChartPart>& parts) {
  for (const RunDescription& run : runs) {
    for (std::size_t i = 0; i < run.predictions.fits.size(); ++i) {
      const Fit& fit = run.predictions.fits[i];
      if (fit.target.empty()) continue;
      std::string of_target = runs.size() == 1 ? "" : ": " + run.short_name();
      if (run.predictions.fits.size() > 1) of_target += fmt::format(", target {}", i);
      const auto [least, greatest] = std::ranges::minmax(fit.target);
      PointChart chart{
          .section = "predictions",
          .title = fmt::format("Predicted against true{}", of_target),
          .summary = fmt::format("Predictions against targets of {} samples, drawn at random; on the "
                                 "diagonal a prediction is exact.",
                                 fit.target.size()),
          .x_name = "target",
          .y_name = "prediction",
          .series = {
              {.label = run.predictions.split, .style = "points", .x = fit.target, .y = fit.prediction},
              diagonal(least, greatest, "exact")}};
      parts.push_back(point_chart(chart, limits));
      add_residuals(fit, of_target, parts);
    }
  }
}

std::string place_of(const ShownPredictions::Worst& record) {
  return fmt::format("record {}", count_text(record.record));
}

std::string gallery(const ShownPredictions& shown) {
  std::string html = "<div class=\"gallery\">\n";
  for (const ShownPredictions::Worst& record : shown.worst) {
    html += fmt::format(
        "<figure class=\"worst\">\n<img src=\"{}\" alt=\"Picture of {}\">\n<figcaption>true: "
        "{}<br>predicted: "
        "{}<br><span>loss {}, {}</span></figcaption>\n</figure>\n",
        record.picture, html_text(place_of(record)), html_text(record.target, 80),
        html_text(record.prediction, 120), html_text(short_number(record.loss)), html_text(place_of(record)));
  }
  return html + "</div>\n";
}

std::string worst_table(const ShownPredictions& shown, const std::string& caption, bool several_files) {
  HtmlTable table{.caption = caption, .head = {"record", "loss", "target", "prediction"}, .numbers = false};
  if (several_files) table.head.emplace_back("file");
  table.head.insert(table.head.end(), shown.columns.begin(), shown.columns.end());
  for (const ShownPredictions::Worst& record : shown.worst) {
    table.rows.push_back(
        {count_text(record.record), short_number(record.loss), record.target, record.prediction});
    std::vector<std::string>& row = table.rows.back();
    if (several_files) row.push_back(record.file);
    row.insert(row.end(), record.cells.begin(), record.cells.end());
    row.resize(table.head.size());
  }
  return to_html(table);
}

}  // namespace

void add_prediction_charts(const std::vector<RunDescription>& runs, const ChartLimits& limits,
                           std::vector<ChartPart>& parts) {
  add_threshold_curves(runs, limits, parts);
  add_reliability(runs, limits, parts);
  for (const RunDescription& run : runs)
    add_confidence(run, runs.size() == 1 ? "" : ": " + run.short_name(), parts);
  add_fits(runs, limits, parts);
}

void add_importance_charts(const std::vector<RunDescription>& runs, std::vector<ChartPart>& parts) {
  constexpr std::size_t kMaxColumns = 20;
  for (const RunDescription& run : runs) {
    const ImportanceOfRun& found = run.importance;
    if (found.columns.empty()) continue;
    Bars bars{.section = "importance",
              .title = fmt::format("By how much the {} of the {} set gets worse when a column is shuffled{}",
                                   found.measure, found.set, runs.size() == 1 ? "" : ": " + run.short_name()),
              .of_names = "column",
              .series = {"mean over the permutations"},
              .values = {{}},
              .across = true,
              .summary = fmt::format("Permutation importance: the {} is {} with all columns as they are.",
                                     found.measure, short_number(found.baseline))};
    for (const ImportanceOfColumn& column : found.columns) {
      if (bars.names.size() == kMaxColumns) break;
      bars.names.push_back(column.name);
      bars.values.front().push_back(column.mean);
    }
    parts.push_back(bar_chart(bars));
  }
}

std::string worst_records_of(const RunDescription& run) {
  const ShownPredictions& shown = run.predictions;
  if (shown.worst.empty()) return "";
  const std::string& file = shown.worst.front().file;
  const bool several_files =
      std::ranges::any_of(shown.worst, [&](const auto& each) { return each.file != file; });
  const std::string caption =
      fmt::format("The {} of {} records of the {} set with the largest losses{}; records are counted from 0",
                  shown.worst.size(), count_text(shown.samples), shown.split,
                  several_files || file.empty() ? "" : fmt::format(", of {}", file));
  const bool pictures =
      std::ranges::all_of(shown.worst, [](const auto& each) { return !each.picture.empty(); });
  if (!pictures) return worst_table(shown, caption, several_files);
  return fmt::format("<p>{}.</p>\n{}<details>\n<summary>Table of these records</summary>\n{}</details>\n",
                     html_text(caption, 400), gallery(shown), worst_table(shown, caption, several_files));
}

}  // namespace lockstep
