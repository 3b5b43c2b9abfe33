#include "lockstep/report/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "html.h"
#include "lockstep/base/errors.h"
#include "page_parts.h"
#include "report_charts.h"
#include "report_sections.h"

namespace lockstep {
namespace {

// The charts of a section with their tables; "" if it has none. `numbers`: of the charts in the script's
// list.
std::string chart_figures(const std::vector<ChartPart>& charts, const std::string& section) {
  std::string html;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    if (charts[i].section != section) continue;
    html += fmt::format(
        "<figure>\n<figcaption>{0}</figcaption>\n<div class=\"legend\"></div>\n"
        "<div class=\"plot\"><canvas data-chart=\"{1}\" role=\"img\" aria-label=\"{2}\"></canvas></div>\n"
        "<details class=\"table\"><summary>Table of {0}</summary>\n{3}</details>\n</figure>\n",
        html_text(charts[i].title), i, html_text(charts[i].summary, 1000), charts[i].table);
  }
  return html;
}

std::string section(const std::string& id, const std::string& title, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n", id,
                     html_text(title), content);
}

std::string grid(const std::string& figures) {
  return figures.empty() ? "" : fmt::format("<div class=\"grid\">\n{}</div>\n", figures);
}

std::string body_of(const std::vector<RunDescription>& runs, const std::vector<ChartPart>& charts) {
  const auto figures = [&](const std::string& name) { return grid(chart_figures(charts, name)); };
  std::string html = section("summary", runs.size() == 1 ? "Summary" : "The runs", summary_section(runs));
  if (runs.size() > 1) html += section("side-by-side", "Side by side", comparison_section(runs));
  html += section("curves", "Learning curves", figures("curves"));
  html += section("speed", "Learning rate, speed and norms", figures("speed"));
  html += section("time", "Where the time went", figures("time"));
  html += section("workers", "Asynchronous workers", figures("workers") + workers_section(runs));
  html += section("classes", "Classes", classes_section(runs));
  html += section("predictions", "Predictions", figures("predictions"));
  html += section("worst", "Records that are predicted worst", worst_section(runs));
  html += section("importance", "Importance of the columns", figures("importance"));
  html += section("columns", "Columns of the data", columns_section(runs));
  html += section("plan", "The plan and what happened", plan_section(runs));
  html += section("config", "Config", config_section(runs));
  return html + section("environment", "Environment", environment_section(runs));
}

std::string page_json(const std::vector<RunDescription>& runs, const std::vector<ChartPart>& charts) {
  std::vector<std::string> names;
  std::vector<std::string> parts;
  for (const RunDescription& run : runs) names.push_back(json_text(run.short_name()));
  for (const ChartPart& chart : charts) parts.push_back(chart.json);
  return script_json(
      fmt::format("{{\"runs\":[{}],\"charts\":[\n{}]}}", fmt::join(names, ","), fmt::join(parts, ",\n")));
}

// Puts texts in the places of their {{NAMES}}, in one pass: what is put in is not looked at again.
std::string fill(std::string_view page,
                 const std::vector<std::pair<std::string_view, std::string_view>>& texts) {
  std::string filled;
  while (true) {
    const std::size_t open = page.find("{{");
    filled += page.substr(0, open);
    if (open == std::string_view::npos) return filled;
    const std::size_t close = page.find("}}", open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    filled += std::ranges::find(texts, name, &std::pair<std::string_view, std::string_view>::first)->second;
    page.remove_prefix(close + 2);
  }
}

std::string make_page(const std::vector<RunDescription>& runs, const ChartLimits& limits) {
  const PageParts& parts = page_parts();
  const std::vector<ChartPart> charts = make_charts(runs, limits);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(runs.size(), 3); ++i)
    names.push_back(runs[i].short_name());
  const std::string title =
      fmt::format("{}{}", fmt::join(names, ", "), runs.size() > names.size() ? ", ..." : "");
  return fill(parts.page, {{"TITLE", html_text(title)},
                           {"CSS", parts.css},
                           {"BODY", body_of(runs, charts)},
                           {"DATA", page_json(runs, charts)},
                           {"LICENCE", parts.licence},
                           {"CHARTS", parts.charts},
                           {"SCRIPT", parts.script}});
}

}  // namespace

std::string report_page(const std::vector<RunDescription>& runs) {
  constexpr std::size_t kMaxRuns = 40;
  constexpr std::size_t kMinPoints = 30;
  constexpr std::size_t kMinRows = 5;
  ChartLimits limits{.points = kMaxChartPoints * 2 / std::clamp(runs.size(), std::size_t{2}, kMaxRuns)};
  while (runs.size() <= kMaxRuns && limits.points >= kMinPoints) {
    const std::string page = make_page(runs, limits);
    if (page.size() <= kMaxPageBytes) return page;
    limits = {.points = limits.points / 2, .rows = std::max(limits.rows / 2, kMinRows)};
  }
  throw ConfigError(fmt::format(
      "{} runs are too many for one page of {} bytes, or have too much in them: give at most {} to a report",
      runs.size(), kMaxPageBytes, kMaxRuns));
}

}  // namespace lockstep
