#include "run_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/train/storage/run_directory.h"
#include "run_record.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored) ? read_file(file) : "";
}

double number_or_zero(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_at(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void add_config(RunDescription& run, const RunRecord& record) {
  for (const Option& option : known_options()) {
    const auto found = record.config.find(option.key);
    if (found == record.config.end()) continue;
    run.config.push_back({option.key, found->second, option.has_value() ? option.text() : ""});
  }
}

// The reliability of the last evaluation.
void add_reliability(RunDescription& run, const Json& summary) {
  const Json evaluation = summary.value("evaluation", Json());
  const Json bins = evaluation.is_object() ? evaluation.value("reliability", Json()) : Json();
  run.reliability_split = text_at(evaluation, "split");
  for (const Json& bin : bins) {
    run.reliability.push_back({.predicted = number_or_zero(bin, "predicted"),
                               .observed = number_or_zero(bin, "observed"),
                               .count = number_or_zero(bin, "samples")});
  }
}

void add_summary(RunDescription& run, const RunDirectory& directory) {
  const std::string text = text_of(directory.summary());
  if (text.empty()) return;
  const auto json = parse_json<Json>(text);
  if (!json.is_object()) throw DataError("it is no object");
  run.steps = number_or_zero(json, "steps");
  run.samples = number_or_zero(json, "samples_seen");
  run.epochs = number_or_zero(json, "epochs");
  run.seconds = number_or_zero(json, "seconds");
  run.algorithm = text_at(json, "algorithm");
  const Json time = json.value("time", Json());
  if (time.is_object()) {
    run.time = TimeOfRun{.data = number_or_zero(time, "data"),
                         .compute = number_or_zero(time, "compute"),
                         .communication = number_or_zero(time, "communication"),
                         .waiting = number_or_zero(time, "waiting"),
                         .idle = number_or_zero(time, "idle")};
  }
  const Json kept = json.value("kept", Json());
  if (kept.is_object()) {
    run.kept = KeptWeights{.best = text_at(kept, "weights") == "best",
                           .step = number_or_zero(kept, "step"),
                           .measure = text_at(kept, "measure"),
                           .value = number_or_zero(kept, "value")};
  }
  add_reliability(run, json);
}

void add_predictions(RunDescription& run, const RunDirectory& directory) {
  const std::string text = text_of(directory.evaluation());
  if (!text.empty()) run.predictions = read_shown_predictions(text);
}

void add_importance(RunDescription& run, const RunDirectory& directory) {
  const std::string text = text_of(directory.importance());
  if (text.empty()) return;
  const auto json = parse_json<Json>(text);
  run.importance = {.measure = text_at(json, "measure"),
                    .set = text_at(json, "set"),
                    .baseline = number_or_zero(json, "baseline")};
  const Json columns = json.is_object() ? json.value("columns", Json()) : Json();
  for (const Json& column : columns) {
    run.importance.columns.push_back(
        {.name = text_at(column, "column"), .mean = number_or_zero(column, "importance")});
  }
}

// A run without a summary, as far as its metrics tell.
void complete_from_metrics(RunDescription& run) {
  if (run.steps > 0) return;
  run.steps = run.metrics.last_step();
  const MetricsTable& train = run.metrics.train;
  if (train.rows() == 0) return;
  run.samples = train.samples.back();
  run.seconds = train.seconds.back();
  const double samples = run.planned_number("samples per epoch");
  if (samples > 0) run.epochs = run.samples / samples;
}

// Rows of plan.txt: a name, two blanks or more, a value.
void add_plan_text(RunDescription& run, const RunDirectory& directory) {
  run.plan = text_of(directory.plan());
  std::istringstream lines(run.plan);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t gap = line.find("  ");
    if (gap == 0 || gap == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(' ', gap);
    if (value != std::string::npos) run.planned.emplace_back(line.substr(0, gap), line.substr(value));
  }
}

std::string describe_values(const Json& column) {
  const auto values = column.find("values");
  if (values == column.end() || !values->is_array()) {
    return fmt::format("{:.5g} to {:.5g}, mean {:.5g}", number_or_zero(column, "min"),
                       number_or_zero(column, "max"), number_or_zero(column, "mean"));
  }
  constexpr std::size_t kShown = 8;
  std::vector<std::string> shown;
  for (const Json& value : *values) {
    if (value.is_string() && shown.size() < kShown) shown.push_back(value.get<std::string>());
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     values->size() > kShown ? fmt::format(", ... ({} in all)", values->size()) : "");
}

void add_schema(RunDescription& run, const RunDirectory& directory) {
  const std::string text = text_of(directory.schema());
  if (text.empty()) return;
  const auto json = parse_json<Json>(text);
  const Json columns = json.is_object() ? json.value("columns", Json()) : Json();
  for (const Json& column : columns) {
    if (!column.is_object()) throw DataError("a column is no object");
    run.columns.push_back(
        {text_at(column, "name"), text_at(column, "use"), text_at(column, "kind"),
         with_commas(static_cast<Index>(std::clamp(number_or_zero(column, "missing_count"), 0.0, 1e15))),
         text_at(column, "use") == "ignore" ? "" : describe_values(column)});
    const auto values = column.find("values");
    if (text_at(column, "use") != "label" || values == column.end() || !values->is_array()) continue;
    for (const Json& value : *values)
      run.classes.push_back(value.is_string() ? value.get<std::string>() : "");
  }
}

bool is_launch(std::string_view line) {
  return line.starts_with(" info ") && line.find(" rank") < line.find(" on ") &&
         line.find(" on ") < line.find(" host") && line.find(" replica") != std::string_view::npos;
}

// "DATE TIME LEVEL TEXT": "2 ranks on 1 host, ..." is about the launch, perhaps behind notes on the data.
void add_log(RunDescription& run, const RunDirectory& directory) {
  constexpr std::size_t kTime = 23;
  constexpr std::size_t kMaxWarnings = 10;
  std::ifstream lines(directory.log(), std::ios::binary);
  std::size_t more = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string_view level = std::string_view(line).substr(std::min(kTime, line.size()));
    if (run.launch.empty() && is_launch(level)) run.launch = level.substr(6);
    for (const std::string_view word : {" warning ", " warn "}) {
      if (!level.starts_with(word)) continue;
      const std::string text(level.substr(word.size()));
      if (std::ranges::find(run.warnings, text) != run.warnings.end()) continue;
      if (run.warnings.size() < kMaxWarnings)
        run.warnings.push_back(text);
      else
        ++more;
    }
  }
  if (more > 0)
    run.warnings.push_back(
        fmt::format("... and {} more; log.txt has all", with_commas(static_cast<Index>(more))));
}

void add_metrics(RunDescription& run, const RunDirectory& directory) {
  run.metrics = read_metrics_history(directory.metrics(), run.kept ? run.kept->step : -1);
}

void add_ranks(RunDescription& run, const RunDirectory& directory) {
  run.ranks = text_of(directory.ranks());
}

}  // namespace

RunDescription describe_run(const std::filesystem::path& path) {
  const RunRecord record = read_run(path);
  const RunDirectory directory{path};
  RunDescription run{.name = record.name,
                     .state = record.running ? "running" : to_string(record.state),
                     .reason = record.reason};
  add_config(run, record);
  const auto add = [&](const std::filesystem::path& file,
                       void (*part)(RunDescription&, const RunDirectory&)) {
    try {
      part(run, directory);
    } catch (const std::exception& error) {
      run.warnings.push_back(fmt::format("{} cannot be read: {}", file.filename().string(), error.what()));
    }
  };
  add(directory.plan(), add_plan_text);
  add(directory.summary(), add_summary);
  add(directory.metrics(), add_metrics);
  add(directory.evaluation(), add_predictions);
  add(directory.importance(), add_importance);
  add(directory.schema(), add_schema);
  add(directory.ranks(), add_ranks);
  add(directory.log(), add_log);
  complete_from_metrics(run);
  return run;
}

std::vector<RunDescription> describe_runs(const std::vector<std::string>& names) {
  std::vector<RunDescription> runs;
  for (const std::filesystem::path& directory : find_runs(names)) runs.push_back(describe_run(directory));
  return runs;
}

}  // namespace lockstep
