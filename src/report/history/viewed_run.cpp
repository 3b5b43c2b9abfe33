#include "lockstep/report/history/viewed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "lockstep/base/text.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

std::string ViewedRun::value(std::string_view key) const {
  const auto found = std::ranges::find(config, key, &ConfigLine::key);
  return found == config.end() ? "" : found->value;
}

std::string ViewedRun::short_name() const {
  const std::string last = std::filesystem::path(name).lexically_normal().filename().string();
  return last.empty() || last == "." ? name : last;
}

std::string common_directory(const std::vector<ViewedRun>& runs) {
  if (runs.size() < 2) return "";
  std::string common = runs.front().name;
  for (const ViewedRun& run : runs)
    common.resize(static_cast<std::size_t>(std::ranges::mismatch(common, run.name).in1 - common.begin()));
  return common.substr(0, common.rfind('/') + 1);
}

std::string end_of(const std::string& name, std::size_t columns) {
  const std::string shown = excerpt(name, std::string::npos);
  std::size_t begin = shown.size() > columns ? shown.size() - columns + 3 : 0;
  while (begin < shown.size() && (shown[begin] & 0xC0) == 0x80) ++begin;  // within a character
  return (begin > 0 ? "..." : "") + shown.substr(begin);
}

bool names_no_result(std::string_view key) {
  return key == "run.dir" || key == "checkpoint.dir" || key == "run.resume" || key == "run.progress" ||
         key == "run.plan" || key.starts_with("report.");
}

// Configs that can be read have all keys, in one order.
std::vector<std::string> differing_keys(const std::vector<const ViewedRun*>& runs, bool all) {
  std::vector<std::string> keys;
  const auto read = std::ranges::find_if(runs, [](const ViewedRun* run) { return !run->config.empty(); });
  if (read == runs.end()) return keys;
  for (const ConfigLine& line : (*read)->config) {
    std::set<std::string> values;
    for (const ViewedRun* run : runs) {
      const bool has_effect = !run->refused || run->settings.contains(line.key);
      if (!run->config.empty() && has_effect) values.insert(run->value(line.key));
    }
    if (values.size() > 1 && (all || !names_no_result(line.key))) keys.push_back(line.key);
  }
  return keys;
}

std::string ShownMeasure::name() const {
  return std::isnan(best_step) ? "-" : fmt::format("{} {}", split, name_with_class(measure, positive));
}

ShownMeasure shown_measure(const ViewedRun& run) {
  ShownMeasure shown{.value = NAN, .best = NAN, .best_step = NAN, .last = NAN};
  const DecidingFigure* decides = run.record.decides();
  if (decides == nullptr) return shown;
  shown.split = decides->split;
  shown.measure = decides->measure;
  shown.positive = run.record.positive;
  shown.value = shown.best = shown.last = decides->value;
  shown.best_step = static_cast<double>(decides->step);
  const auto take = [&](const std::map<std::string, EvaluationFigures>& all, double& value) {
    const auto found = all.find(shown.split);
    if (found != all.end()) value = find_metric(found->second.values, shown.measure).value_or(NAN);
  };
  take(run.record.figures, shown.value);
  take(run.record.last, shown.last);
  const auto table = std::ranges::find(run.metrics.evaluations, shown.split, &EvaluationHistory::split);
  const bool evaluated = table != run.metrics.evaluations.end();
  shown.values = (evaluated ? table->table : run.metrics.train).find(shown.measure);
  return shown;
}

bool has_other_last(const ViewedRun& run, const std::string& split) {
  const auto kept = run.record.figures.find(split);
  const auto last = run.record.last.find(split);
  return kept != run.record.figures.end() && last != run.record.last.end() &&
         kept->second.step != last->second.step;
}

std::vector<std::size_t> ranks_waiting_least(const std::vector<RankTime>& ranks, std::size_t count) {
  std::vector<std::size_t> all(ranks.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::ranges::stable_sort(all, {}, [&](std::size_t rank) { return ranks[rank].waiting; });
  all.resize(std::min(all.size(), count));
  std::ranges::sort(all);
  return all;
}

std::string progress_of(const ViewedRun& run) {
  const auto planned = static_cast<double>(run.record.plan.steps);
  if (planned <= 0) return count_text(run.steps());
  return fmt::format("{}/{} ({:.0f} %)", count_text(run.steps()), count_text(planned),
                     100 * run.steps() / planned);
}

double time_share(const ViewedRun& run, const std::string& name) {
  const nlohmann::ordered_json& result = run.record.result;
  if (result.is_object() && result.contains("time") && result["time"].is_object()) {
    const auto found = result["time"].find(name);
    return found != result["time"].end() && found->is_number() ? found->get<double>() : 0;
  }
  const MetricsTable::Column* column = run.metrics.train.find("time." + name);
  return column == nullptr || !std::isfinite(column->values.back()) ? 0 : column->values.back();
}

double seconds_left(const ViewedRun& run) {
  const auto planned = static_cast<double>(run.record.plan.steps);
  const bool known = run.record.state == RunState::kRunning && planned > run.steps() && run.steps() > 0;
  return known && run.record.seconds > 0 ? run.record.seconds * (planned - run.steps()) / run.steps() : NAN;
}

std::vector<std::size_t> kept_points(std::span<const double> values, std::size_t max_points) {
  std::vector<std::size_t> kept;
  if (values.size() <= max_points) {
    kept.resize(values.size());
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  const std::size_t buckets = (max_points - 2) / 2;
  kept.push_back(0);
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::size_t begin = values.size() * bucket / buckets;
    const std::size_t end = values.size() * (bucket + 1) / buckets;
    std::size_t least = begin;
    std::size_t greatest = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) continue;
      if (!std::isfinite(values[least]) || values[i] < values[least]) least = i;
      if (!std::isfinite(values[greatest]) || values[i] > values[greatest]) greatest = i;
    }
    kept.push_back(std::min(least, greatest));
    kept.push_back(std::max(least, greatest));
  }
  kept.push_back(values.size() - 1);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

}  // namespace lockstep
