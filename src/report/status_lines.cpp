#include "lockstep/report/status_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "html.h"
#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "lockstep/base/text_table.h"

namespace lockstep {
namespace {

using Row = std::vector<std::string>;

std::string progress_of(const RunDescription& run) {
  const double planned = run.planned_number("steps");
  if (planned <= 0) return count_text(run.steps);
  return fmt::format("{}/{} ({:.0f} %)", count_text(run.steps), count_text(planned),
                     100 * run.steps / planned);
}

// The accuracy where there is one, else the loss, of the validation set, of the test set or of the training.
struct Measured {
  std::string name;
  double last = 0;
  double best = 0;
};

Measured measured(const RunDescription& run) {
  const MetricsTable* table = &run.metrics.train;
  std::string split = "train";
  for (const EvaluationHistory& each : run.metrics.evaluations) {
    if (split == "validation") continue;
    table = &each.table;
    split = each.split;
  }
  for (const char* name : {"accuracy", "loss"}) {
    const MetricsTable::Column* column = table->find(name);
    if (column == nullptr || column->values.empty()) continue;
    const bool greater = std::string_view(name) == "accuracy";
    double best = column->values.front();
    for (const double value : column->values) {
      if (!std::isfinite(best) || (greater ? value > best : value < best)) best = value;
    }
    return {fmt::format("{} {}", split, name), column->values.back(), best};
  }
  return {"-", NAN, NAN};
}

std::string time_left(const RunDescription& run) {
  const double planned = run.planned_number("steps");
  if (run.state != "running" || planned <= run.steps || run.steps <= 0 || run.seconds <= 0) return "-";
  return human_seconds(run.seconds * (planned - run.steps) / run.steps);
}

Row row_of(const RunDescription& run) {
  const Measured values = measured(run);
  return {excerpt(run.name),
          run.state,
          progress_of(run),
          excerpt(values.name, 30),
          short_number(values.last),
          short_number(values.best),
          run.seconds > 0 ? count_text(run.samples / run.seconds) : "-",
          time_left(run)};
}

}  // namespace

std::string status_lines(const std::vector<RunDescription>& runs) {
  std::vector<Row> rows{{"run", "state", "steps", "measure", "last", "best", "samples/s", "time left"}};
  for (const RunDescription& run : runs) rows.push_back(row_of(run));
  return text_table(rows);
}

}  // namespace lockstep
