#include "run_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "lockstep/base/text.h"

namespace lockstep {

std::string ShownMeasure::name() const {
  return values == nullptr ? "-" : fmt::format("{} {}", split, measure);
}

double ShownMeasure::last() const {
  return values == nullptr ? NAN : values->values.back();
}

ShownMeasure shown_measure(const RunDescription& run) {
  ShownMeasure shown{.split = "train", .table = &run.metrics.train, .best = NAN, .best_step = NAN};
  for (const EvaluationHistory& each : run.metrics.evaluations) {
    if (shown.split == "validation") continue;
    shown.table = &each.table;
    shown.split = each.split;
  }
  for (const char* name : {"accuracy", "loss"}) {
    const MetricsTable::Column* column = shown.table->find(name);
    if (column == nullptr || column->values.empty()) continue;
    shown.measure = name;
    shown.values = column;
    const bool greater = shown.measure == "accuracy";
    for (std::size_t i = 0; i < column->values.size(); ++i) {
      const double value = column->values[i];
      if (std::isfinite(shown.best) && !(greater ? value > shown.best : value < shown.best)) continue;
      shown.best = value;
      shown.best_step = shown.table->steps[i];
    }
    break;
  }
  return shown;
}

std::vector<std::size_t> ranks_waiting_least(const std::vector<RankTime>& ranks, std::size_t count) {
  std::vector<std::size_t> all(ranks.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::ranges::stable_sort(all, {}, [&](std::size_t rank) { return ranks[rank].waiting; });
  all.resize(std::min(all.size(), count));
  std::ranges::sort(all);
  return all;
}

std::string progress_of(const RunDescription& run) {
  const double planned = run.planned_number("steps");
  if (planned <= 0) return count_text(run.steps);
  return fmt::format("{}/{} ({:.0f} %)", count_text(run.steps), count_text(planned),
                     100 * run.steps / planned);
}

std::string time_left(const RunDescription& run) {
  const double planned = run.planned_number("steps");
  if (run.state != "running" || planned <= run.steps || run.steps <= 0 || run.seconds <= 0) return "-";
  return human_seconds(run.seconds * (planned - run.steps) / run.steps);
}

}  // namespace lockstep
