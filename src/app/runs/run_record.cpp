#include "run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/config/command_line.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_run(const RunDirectory& run) {
  return is_there(run.log()) || is_there(run.metrics()) || (is_there(run.config()) && is_there(run.plan()));
}

// A number of steps that a file states, which may be any.
Index whole_steps(double steps) {
  return static_cast<Index>(std::clamp(steps, 0.0, 1e15));
}

std::optional<double> find_number(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Notes that a file cannot be used; the first reason stays.
void damage(RunRecord& record, const std::string& reason) {
  if (record.state == RunState::kDamaged) return;
  record.state = RunState::kDamaged;
  record.reason = reason;
}

void read_config(RunRecord& record, const RunDirectory& run) {
  if (!is_there(run.config())) return damage(record, "it has no config.toml");
  try {
    Config shown;
    const std::vector<Option> options = declare_options(shown, known_names());
    shown = load_config({}, {"config.toml", read_file(run.config())}, known_names()).config;
    for (const Option& option : options) record.config[option.key] = option.has_value() ? option.text() : "";
  } catch (const Error& error) {
    record.config.clear();
    damage(record, fmt::format("config.toml: {}", error.what()));
  }
}

// The numbers of an evaluation that measure the model.
MetricValues evaluation_measures(const MetricsLine& evaluation) {
  MetricValues values;
  for (const auto& [name, value] : evaluation.values) {
    if (std::isfinite(value) && is_measure(name)) values.emplace_back(name, value);
  }
  return values;
}

bool is_better(const std::string& measure, double now, double before) {
  return smaller_is_better(measure) ? now < before : now > before;
}

// Goes through metrics.jsonl from its start.
class Evaluations {
 public:
  Evaluations(RunRecord& record, std::string measure, bool keeps_best)
      : record_(record), measure_(std::move(measure)), keeps_best_(keeps_best) {}

  void add(const MetricsLine& line) {
    const Index step = whole_steps(line.step);
    const MetricValues values = evaluation_measures(line);
    record_.steps = std::max(record_.steps, step);
    if (line.kind == "train") offer("train", "loss", find_metric(values, "loss"), step);
    if (line.kind != "evaluation") return;
    offer(line.split, measure_, find_metric(values, measure_), step);
    record_.last[line.split] = values;
  }

  void finish() {
    for (const char* split : {"validation", "test", "train"}) {
      const auto found = best_.find(split);
      if (found == best_.end()) continue;
      record_.best = found->second;
      return;
    }
  }

 private:
  void offer(const std::string& split, const std::string& measure, std::optional<double> value, Index step) {
    if (!value) return;
    const auto before = best_.find(split);
    const bool keeps = keeps_best_ && split == "validation";
    if (keeps && before != best_.end() && !is_better(measure, *value, before->second.value)) return;
    best_[split] = {.split = split, .measure = measure, .value = *value, .step = step};
  }

  RunRecord& record_;
  std::string measure_;
  bool keeps_best_;
  std::map<std::string, BestValue> best_;
};

void read_metrics(RunRecord& record, const RunDirectory& run) {
  if (!is_there(run.metrics())) return;
  const auto measure = record.config.find("train.early_stopping_metric");
  const auto keep = record.config.find("train.keep");
  Evaluations evaluations(record, measure == record.config.end() ? "loss" : measure->second,
                          keep == record.config.end() || keep->second != "last");
  const std::vector<std::string> faults =
      read_metrics_lines(run.metrics(), [&](const MetricsLine& line) { evaluations.add(line); });
  if (!faults.empty()) damage(record, fmt::format("metrics.jsonl, {}", faults.front()));
  evaluations.finish();
}

void read_summary(RunRecord& record, const RunDirectory& run) {
  if (!is_there(run.summary())) return;
  const auto json = parse_json<Json>(read_file(run.summary()));
  const std::optional<double> steps = json.is_object() ? find_number(json, "steps") : std::nullopt;
  if (!steps) throw DataError("it has no steps");
  record.steps = whole_steps(*steps);
  record.seconds = find_number(json, "seconds").value_or(0);
  if (record.state == RunState::kUnfinished) record.state = RunState::kDone;
  if (record.state == RunState::kDone && !run.lost().empty()) {
    damage(record, fmt::format("lost: {}", listed(run.lost())));
  } else if (record.state == RunState::kDone && !is_there(run.model())) {
    damage(record, "it has no model.safetensors");
  }
}

// The last word of the log: an error, or why the run stopped. "DATE TIME LEVEL TEXT"
void read_log(RunRecord& record, const RunDirectory& run) {
  if (!is_there(run.log())) return;
  const std::string unknown = record.reason;
  std::istringstream lines(read_file(run.log()));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t error = line.find(" error ");
    const std::size_t stopped = line.find(" info stopped after ");
    const std::size_t plan = line.find(" info plan:");  // another start
    constexpr std::size_t kTime = 23;
    if (error == kTime) {
      record.state = RunState::kFailed;
      record.reason = line.substr(kTime + 7);
    } else if (stopped == kTime) {
      record.state = RunState::kStopped;
      record.reason = line.substr(kTime + 6);
    } else if (plan == kTime) {
      record.state = RunState::kUnfinished;
      record.reason = unknown;
    }
  }
}

// Why a run has no summary.
void explain_end(RunRecord& record, const RunDirectory& run) {
  if (record.state != RunState::kUnfinished) return;
  record.reason = fmt::format("after step {}", with_commas(record.steps));
  if (run.is_held()) {
    record.running = true;
    record.reason += ": a trainer works on it";
    return;
  }
  read_log(record, run);
  if (record.state == RunState::kUnfinished) record.reason += ", without a last word";
}

void collect(const fs::path& directory, int depth, std::vector<fs::path>& runs) {
  constexpr int kMaxDepth = 5;
  if (is_run({directory})) {
    runs.push_back(directory);
    return;
  }
  if (depth == kMaxDepth) return;
  std::vector<fs::path> inside;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(directory, unreadable)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) inside.push_back(entry.path());
  }
  std::ranges::sort(inside);
  for (const fs::path& each : inside) collect(each, depth + 1, runs);
}

[[noreturn]] void fail_without_runs(const std::string& name) {
  expect_run_exists(name);
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) {
    throw ConfigError(fmt::format(
        "there is no run in '{}': expected the directory of a run, or one with runs in it", name));
  }
  throw ConfigError(
      fmt::format("'{}' is no directory: expected the directory of a run, or one with runs in it", name));
}

}  // namespace

std::optional<double> find_metric(const MetricValues& values, const std::string& name) {
  for (const auto& [metric, value] : values) {
    if (metric == name) return value;
  }
  return std::nullopt;
}

std::string to_string(RunState state) {
  switch (state) {
    case RunState::kDone:
      return "done";
    case RunState::kUnfinished:
      return "unfinished";
    case RunState::kStopped:
      return "stopped";
    case RunState::kFailed:
      return "failed";
    case RunState::kDamaged:
      return "damaged";
  }
  return "";
}

RunRecord read_run(const fs::path& directory) {
  RunRecord record{.name = directory.lexically_normal().string()};
  const RunDirectory run{directory};
  const auto read = [&](const char* file, void (*part)(RunRecord&, const RunDirectory&)) {
    try {
      part(record, run);
    } catch (const Error& error) {
      damage(record, fmt::format("{}: {}", file, error.what()));
    }
  };
  read("config.toml", read_config);
  read("metrics.jsonl", read_metrics);
  read("summary.json", read_summary);
  read("log.txt", explain_end);
  return record;
}

std::vector<fs::path> find_runs(const std::vector<std::string>& names) {
  std::vector<fs::path> runs;
  std::set<fs::path> seen;
  for (const std::string& name : names) {
    std::vector<fs::path> found;
    std::string path = name;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) collect(path, 0, found);
    if (found.empty()) fail_without_runs(name);
    for (const fs::path& run : found) {
      if (seen.insert(fs::weakly_canonical(run, ignored)).second) runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace lockstep
