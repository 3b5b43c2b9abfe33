// Several runs in one table: what came of them, and the keys in which they differ.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "html.h"
#include "lockstep/base/text.h"
#include "report_charts.h"
#include "report_sections.h"

namespace lockstep {
namespace {

using ComparisonRow = std::vector<std::string>;

// Values of each run by the name of the row, in the order in which the names came.
class Rows {
 public:
  explicit Rows(std::size_t runs) : runs_(runs) {}

  void set(const std::string& name, std::size_t run, const std::string& value) {
    auto row = std::ranges::find_if(rows_, [&](const ComparisonRow& each) { return each.front() == name; });
    if (row == rows_.end()) {
      row = rows_.insert(rows_.end(), ComparisonRow(runs_ + 1, "-"));
      row->front() = name;
    }
    (*row)[run + 1] = value;
  }

  const std::vector<ComparisonRow>& all() const { return rows_; }

 private:
  std::size_t runs_;
  std::vector<ComparisonRow> rows_;
};

double mean_staleness(const RunDescription& run) {
  double gradients = 0;
  double sum = 0;
  for (const WorkerHistory& worker : run.metrics.workers) {
    for (std::size_t staleness = 0; staleness < worker.staleness.size(); ++staleness) {
      const auto count = static_cast<double>(worker.staleness[staleness]);
      gradients += count;
      sum += count * static_cast<double>(staleness);
    }
  }
  return gradients > 0 ? sum / gradients : 0;
}

// The sentences of plan.txt that begin with `words`: what a step or an epoch is.
std::string sentences_of(const RunDescription& run, std::string_view words) {
  std::istringstream lines(run.plan);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(words)) text += (text.empty() ? "" : " ") + line;
  }
  return text;
}

// Tells what the runs mean by a step and an epoch; nothing if all mean the same.
std::string meanings_table(const std::vector<RunDescription>& runs) {
  HtmlTable table{.caption = "What a step and an epoch are",
                  .head = {"run", "step", "epoch"},
                  .numbers = false,
                  .max_bytes = 1000};
  std::set<ComparisonRow> different;
  for (const RunDescription& run : runs) {
    const ComparisonRow meaning{sentences_of(run, "Each "), sentences_of(run, "An epoch ")};
    different.insert(meaning);
    table.rows.push_back({run.short_name(), meaning.front(), meaning.back()});
  }
  return different.size() > 1 ? to_html(table) : "";
}

void add_measures(const RunDescription& run, std::size_t index, Rows& rows) {
  rows.set("state", index, run.state);
  for (const EvaluationHistory& each : run.metrics.evaluations) {
    for (const MetricsTable::Column& column : each.table.columns) {
      if (!is_measure(column.name)) continue;
      rows.set(fmt::format("{}: {}", each.split, title_of(column.name)), index,
               short_number(column.values.back()));
    }
  }
  const MetricsTable::Column* loss = run.metrics.train.find("loss");
  if (loss != nullptr) rows.set("train: Loss", index, short_number(loss->values.back()));
  rows.set("steps", index, count_text(run.steps));
  rows.set("samples", index, count_text(run.samples));
  if (run.steps > 0) rows.set("samples of a step", index, short_number(run.samples / run.steps));
  const std::string batch = run.planned_value("global batch");
  if (!batch.empty()) rows.set("global batch", index, batch);
  const std::string seen = run.planned_value("each example seen");
  if (!seen.empty()) rows.set("each example seen (planned)", index, seen);
  if (!run.metrics.workers.empty()) rows.set("mean staleness", index, short_number(mean_staleness(run)));
  if (run.kept) rows.set("kept step", index, count_text(run.kept->step));
  if (run.seconds <= 0) return;
  rows.set("time of training", index, human_seconds(run.seconds));
  rows.set("samples a second", index, count_text(run.samples / run.seconds));
}

void add_keys(const std::vector<RunDescription>& runs, Rows& rows) {
  // Configs that can be read have all keys, in one order.
  const auto read = std::ranges::find_if(runs, [](const RunDescription& run) { return !run.config.empty(); });
  if (read == runs.end()) return;
  for (const ConfigLine& line : read->config) {
    std::set<std::string> values;
    for (const RunDescription& run : runs) {
      if (!run.config.empty()) values.insert(run.value(line.key));
    }
    if (values.size() < 2 || names_no_result(line.key)) continue;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::string value = runs[i].value(line.key);
      rows.set(line.key, i, runs[i].config.empty() ? "-" : value.empty() ? "(not given)" : value);
    }
  }
}

}  // namespace

std::string comparison_section(const std::vector<RunDescription>& runs) {
  Rows measures(runs.size());
  Rows keys(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) add_measures(runs[i], i, measures);
  add_keys(runs, keys);
  ComparisonRow head{""};
  for (const RunDescription& run : runs) head.push_back(run.short_name());
  const std::string html =
      to_html({.caption = "The last numbers of each run", .head = head, .rows = measures.all()}) +
      meanings_table(runs);
  if (keys.all().empty()) return html + "<p>All keys have the same values.</p>\n";
  return html + to_html({.caption = "Keys that differ", .head = head, .rows = keys.all(), .numbers = false});
}

}  // namespace lockstep
