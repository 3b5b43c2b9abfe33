#include "read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/config/command_line.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The row of a trial in its sweep; "" for a run by itself.
fs::path row_of(const fs::path& run) {
  const fs::path sweep = run.parent_path();
  const fs::path row = sweep / "rows" / (run.filename().string() + ".json");
  return is_there(sweep / "sweep.toml") && is_there(row) ? row : fs::path();
}

bool is_run(const RunDirectory& run) {
  return is_there(run.record()) || is_there(run.metrics()) ||
         (is_there(run.config()) && is_there(run.plan())) || !row_of(run.root).empty();
}

// Notes that a file cannot be used; the first reason stays.
void damage(RunRecord& record, const std::string& reason) {
  if (record.state == RunState::kDamaged) return;
  record.state = RunState::kDamaged;
  record.reason = reason;
}

void read_record(ViewedRun& run, const RunDirectory& directory) {
  std::optional<RunRecord> found = read_run_record(directory);
  error_if<DataError>(!found, "it is missing; {}", kOtherVersion);
  run.record = *std::move(found);
}

// `by_config`: which keys have no effect is not known, so they are those that config.toml does not set.
void take_config(ViewedRun& run, const std::string& text, bool by_config = false) {
  const Config config = load_config({}, {"config.toml", text}, known_options());
  for (const Option& option : known_options()) {
    const bool idle =
        by_config ? !config.given.contains(option.key) : run.record.idle_keys.contains(option.key);
    const bool shown = option.has_value(config) && !idle;
    const bool has_default = option.if_not_given.empty() && !idle;
    run.config.push_back(
        {option.key, shown ? option.text(config) : "", has_default ? option.default_text : ""});
  }
}

void read_config(ViewedRun& run, const RunDirectory& directory) {
  if (!is_there(directory.config())) return damage(run.record, "it has no config.toml");
  take_config(run, read_file(directory.config()), run.record.state == RunState::kDamaged);
}

// A trial that was refused before it had a directory: all there is of it are its row and the config of the
// sweep.
void read_refused_trial(ViewedRun& run, const RunDirectory& directory) {
  run.refused = true;
  read_json(read_file(row_of(directory.root)), [&](const Json& row) {
    run.record.state = RunState::kFailed;
    run.record.reason = row.value("reason", "");
    run.record.exit_code = row.value("exit_code", 0);
    if (row.at("state") != "failed") damage(run.record, "its directory is gone, its row is there");
    take_config(run, read_file(directory.root.parent_path() / "sweep.toml"));
    const Json settings = row.value("settings", Json::object());
    for (const auto& [key, value] : settings.items()) {
      run.settings.insert(key);
      const auto line = std::ranges::find(run.config, key, &ConfigLine::key);
      if (line != run.config.end()) line->value = value;
    }
  });
}

// The record of a run that has not ended may be some seconds behind its metrics.
void read_metrics(ViewedRun& run, const RunDirectory& directory) {
  RunRecord& record = run.record;
  const double kept_step = record.is_complete() ? static_cast<double>(record.kept.step) : -1;
  const std::string average = record.kept.average;
  const bool ended = record.has_ended();
  if (!ended) {  // the lines fill these in again
    record.progress = {};
    record.seconds = 0;
    record.timed = {};
    record.figures.clear();
    record.last.clear();
    record.deciding.clear();
    record.kept = {};
  }
  double ranks_step = 0;
  run.metrics = read_metrics_history(directory.metrics(), kept_step, [&](const MetricsLine& line) {
    if (line.kind == "ranks") ranks_step = line.step;
    if (!ended) add_line(record, line, [&](Index) { return average; });
  });
  // The times of the ranks are those since the last start.
  const std::vector<Index>& starts = record.launch.resumed_at;
  if (!starts.empty() && ranks_step <= static_cast<double>(starts.back())) run.metrics.ranks = {};
  if (!run.metrics.faults.empty()) {
    damage(record, fmt::format("metrics.jsonl, {}", run.metrics.faults.front()));
  }
}

void collect(const fs::path& directory, int depth, std::vector<fs::path>& runs) {
  constexpr int kMaxDepth = 5;
  if (is_run({directory})) {
    runs.push_back(directory);
    return;
  }
  if (depth == kMaxDepth) return;
  std::set<fs::path> inside;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(directory, unreadable)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) inside.insert(entry.path());
  }
  for (const auto& row : fs::directory_iterator(directory / "rows", unreadable)) {
    const fs::path trial = directory / row.path().stem();
    if (!row_of(trial).empty()) inside.insert(trial);
  }
  for (const fs::path& each : inside) collect(each, depth + 1, runs);
}

[[noreturn]] void fail_without_runs(const std::string& name) {
  expect_run_exists(name);
  std::error_code ignored;
  error_if(fs::is_directory(name, ignored),
           "there is no run in '{}': expected the directory of a run, or one with runs in it", name);
  throw ConfigError("'{}' is no directory: expected the directory of a run, or one with runs in it", name);
}

}  // namespace

ViewedRun read_run(const fs::path& path) {
  ViewedRun run{.name = path.lexically_normal().string()};
  const RunDirectory directory{path};
  const auto read = [&](const char* file, void (*part)(ViewedRun&, const RunDirectory&)) {
    try {
      part(run, directory);
    } catch (const Error& error) {
      damage(run.record, fmt::format("{}: {}", file, error.what()));
    }
  };
  if (!is_there(directory.config()) && !row_of(path).empty()) {
    read("its row in the sweep", read_refused_trial);
    return run;
  }
  read("run.json", read_record);
  read("config.toml", read_config);
  read("metrics.jsonl", read_metrics);
  if (run.record.is_complete() && !is_there(directory.model())) {
    damage(run.record, "it has no model.safetensors");
  }
  return run;
}

std::vector<ViewedRun> read_runs(const std::vector<fs::path>& directories) {
  std::vector<ViewedRun> runs;
  for (const fs::path& directory : directories) runs.push_back(read_run(directory));
  return runs;
}

std::vector<fs::path> find_runs(const std::vector<std::string>& names) {
  std::vector<fs::path> runs;
  std::set<fs::path> seen;
  for (const std::string& name : names) {
    std::vector<fs::path> found;
    std::string path = name;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    std::error_code ignored;
    if (fs::is_directory(path, ignored) || !row_of(path).empty()) collect(path, 0, found);
    if (found.empty()) fail_without_runs(name);
    for (const fs::path& run : found) {
      if (seen.insert(fs::weakly_canonical(run, ignored)).second) runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace lockstep
