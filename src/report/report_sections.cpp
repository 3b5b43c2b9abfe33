#include "report_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "html.h"
#include "lockstep/base/text.h"
#include "lockstep/report/evaluation_tables.h"
#include "report_charts.h"
#include "report_predictions.h"
#include "run_story.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxValueBytes = 400;

std::string folded(const std::string& summary, const std::string& content) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", html_text(summary), content);
}

// With several runs each part has the run's name as its title.
template <class Part>
std::string for_each_run(const std::vector<RunDescription>& runs, const Part& part) {
  std::string html;
  for (const RunDescription& run : runs) {
    const std::string content = part(run);
    if (content.empty()) continue;
    html += runs.size() == 1 ? content : folded(run.name, content);
  }
  return html;
}

std::string list_of(const std::vector<std::string>& items) {
  std::string html = "<ul>\n";
  for (const std::string& item : items) html += fmt::format("<li>{}</li>\n", html_text(item, 1000));
  return html + "</ul>\n";
}

std::string share(double value) {
  return std::isfinite(value) ? fmt::format("{:.1f} %", 100 * value) : "-";
}

std::string summary_of(const RunDescription& run) {
  std::string html = fmt::format("<p class=\"state {0}\">{0}</p>\n<p>", html_text(run.state));
  for (const std::string& sentence : tell_story(run)) html += html_text(sentence, 1000) + "\n";
  html += "</p>\n";
  const std::vector<std::string> things = things_to_look_at(run);
  return things.empty() ? html : html + "<h3>What to look at</h3>\n" + list_of(things);
}

std::string confusion_table(const RunDescription& run, const EvaluationHistory& shown) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\">\n"
      "<table class=\"confusion\">\n<caption><span>Samples of the {} set after step {}: rows are true "
      "classes, "
      "columns predicted ones</span></caption>\n<thead><tr><th scope=\"col\">true</th>",
      html_text(shown.split), count_text(shown.confusion_step));
  for (std::size_t i = 0; i < shown.confusion.size(); ++i) {
    html += fmt::format("<th scope=\"col\">{}</th>", html_text(class_name(run.classes, i), 60));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t row = 0; row < shown.confusion.size(); ++row) {
    Index all = 0;
    for (const Index samples : shown.confusion[row]) all += samples;
    html += fmt::format("<tr><th scope=\"row\">{}</th>", html_text(class_name(run.classes, row), 60));
    for (std::size_t column = 0; column < shown.confusion.size(); ++column) {
      const Index samples = shown.confusion[row][column];
      const double part = all > 0 ? static_cast<double>(samples) / static_cast<double>(all) : 0;
      html += part < 0.005
                  ? fmt::format("<td>{}</td>", samples)
                  : fmt::format("<td class=\"{}\" style=\"--s:{:.2f}\">{}</td>", row == column ? "y" : "n",
                                std::sqrt(std::clamp(part, 0.0, 1.0)), samples);
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

std::string classes_of(const RunDescription& run) {
  const EvaluationHistory* shown = shown_confusion(run);
  if (shown == nullptr) return "";
  HtmlTable table{
      .caption =
          "Each class: of its samples, how many are recognised (recall); of those that are taken for "
          "it, how many are it (precision)",
      .head = {"class", "samples", "precision", "recall", "F1"}};
  const std::vector<ClassScore> scores = class_scores(shown->confusion);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    table.rows.push_back({class_name(run.classes, i), with_commas(scores[i].samples),
                          share(scores[i].precision), share(scores[i].recall), share(scores[i].f1)});
  }
  constexpr std::size_t kManyClasses = 30;
  const std::string matrix = confusion_table(run, *shown);
  return (scores.size() > kManyClasses ? folded("Confusion matrix", matrix) : matrix) + to_html(table);
}

std::string worker_table(const RunDescription& run) {
  if (run.metrics.workers.empty()) return "";
  double all = 0;
  for (const WorkerHistory& worker : run.metrics.workers) all += static_cast<double>(worker.samples);
  const double even = all / static_cast<double>(run.metrics.workers.size());
  HtmlTable table{
      .caption = "What each worker gave",
      .head = {"worker", "gradients", "samples applied", "times an even share", "gradients dropped"}};
  for (std::size_t i = 0; i < run.metrics.workers.size(); ++i) {
    const WorkerHistory& worker = run.metrics.workers[i];
    table.rows.push_back({fmt::format("{}", i), with_commas(worker.computed), with_commas(worker.samples),
                          even > 0 ? fmt::format("{:.2f}", static_cast<double>(worker.samples) / even) : "-",
                          with_commas(worker.dropped)});
  }
  return to_html(table);
}

std::string columns_of(const RunDescription& run) {
  if (run.columns.empty()) return "";
  constexpr std::size_t kMaxColumns = 200;
  const bool cut = run.columns.size() > kMaxColumns;
  HtmlTable table{.caption = cut ? fmt::format("The first {} of {} columns", kMaxColumns, run.columns.size())
                                 : "Columns of the table, as training has seen them",
                  .head = {"column", "use", "kind", "missing values", "values"},
                  .rows = run.columns,
                  .numbers = false};
  if (cut) table.rows.resize(kMaxColumns);
  return to_html(table);
}

std::string plan_of(const RunDescription& run) {
  HtmlTable table{.caption = "Planned and done", .head = {"", "planned", "done"}};
  const auto add = [&](const std::string& name, const std::string& done) {
    const std::string planned = run.planned_value(name);
    if (!planned.empty()) table.rows.push_back({name, planned, done});
  };
  add("steps", count_text(run.steps));
  add("samples", count_text(run.samples));
  add("epochs", fmt::format("{:.4g}", run.epochs));
  const double records = run.planned_number("rows");
  if (records > 0) add("each example seen", fmt::format("{:.4g} times", run.samples / records));
  std::string html = table.rows.empty() ? "" : to_html(table);
  if (!run.plan.empty())
    html += folded("Model and plan (plan.txt)", "<pre tabindex=\"0\">" + html_lines(run.plan) + "</pre>\n");
  return html;
}

std::string config_of(const RunDescription& run) {
  if (run.config.empty()) return "";
  HtmlTable differing{
      .caption = "What differs from the defaults", .head = {"key", "value", "default"}, .numbers = false};
  HtmlTable all{.caption = "Every key; * marks those that differ from the default",
                .head = {"key", "value"},
                .numbers = false};
  for (const ConfigLine& line : run.config) {
    const auto shown = [](const std::string& value) { return value.empty() ? "(not given)" : value; };
    const bool differs = line.value != line.by_default;
    if (differs) differing.rows.push_back({line.key, shown(line.value), shown(line.by_default)});
    all.rows.push_back({fmt::format("{}{}", line.key, differs ? " *" : ""), shown(line.value)});
  }
  return to_html(differing) + folded("All keys", to_html(all));
}

std::string environment_of(const RunDescription& run) {
  std::string html;
  if (!run.launch.empty()) html += fmt::format("<p>{}</p>\n", html_text(run.launch, kMaxValueBytes));
  if (!run.algorithm.empty())
    html += fmt::format("<p>Exchange algorithm: {}</p>\n", html_text(run.algorithm));
  if (!run.ranks.empty())
    html += folded("Ranks, hosts and cores (ranks.txt)",
                   "<pre tabindex=\"0\">" + html_lines(run.ranks) + "</pre>\n");
  return html;
}

}  // namespace

std::string summary_section(const std::vector<RunDescription>& runs) {
  constexpr std::size_t kFewRuns = 2;  // of more the stories are folded, so that the curves are not far
  std::string html;
  for (const RunDescription& run : runs) {
    if (runs.size() > kFewRuns) {
      html += folded(fmt::format("{}: {}", run.name, run.state), summary_of(run));
      continue;
    }
    if (runs.size() > 1) html += fmt::format("<h3 class=\"run\">{}</h3>\n", html_text(run.name));
    html += summary_of(run);
  }
  return html;
}

std::string workers_section(const std::vector<RunDescription>& runs) {
  return for_each_run(runs, worker_table);
}

std::string classes_section(const std::vector<RunDescription>& runs) {
  return for_each_run(runs, classes_of);
}

std::string worst_section(const std::vector<RunDescription>& runs) {
  return for_each_run(runs, worst_records_of);
}

std::string columns_section(const std::vector<RunDescription>& runs) {
  return for_each_run(runs, columns_of);
}

std::string plan_section(const std::vector<RunDescription>& runs) {
  return for_each_run(runs, plan_of);
}

std::string config_section(const std::vector<RunDescription>& runs) {
  return for_each_run(runs, config_of);
}

std::string environment_section(const std::vector<RunDescription>& runs) {
  return for_each_run(runs, environment_of);
}

}  // namespace lockstep
