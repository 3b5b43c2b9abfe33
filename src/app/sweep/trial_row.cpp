#include "trial_row.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStates{
    std::pair{TrialState::kWaiting, "waiting"}, std::pair{TrialState::kStopped, "stopped"},
    std::pair{TrialState::kPaused, "paused"},   std::pair{TrialState::kDropped, "dropped"},
    std::pair{TrialState::kFailed, "failed"},   std::pair{TrialState::kDone, "done"}};

TrialState state_named(const std::string& name) {
  for (const auto& [state, text] : kStates) {
    if (name == text) return state;
  }
  throw DataError(fmt::format("'{}' is no state of a trial", name));
}

double number_or_nan(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// Its numbers by name, those of the samples too.
Json measures_in(const MetricsLine& evaluation) {
  Json measures = Json::object();
  for (const auto& [name, value] : evaluation.values) {
    if (name == "samples") measures[name] = static_cast<Index>(value);
    if (std::isfinite(value) && is_measure(name)) measures[name] = value;
  }
  return measures;
}

}  // namespace

TrialRow parse_row(const Json& json) {
  TrialRow row{.number = whole_number(json.at("trial")), .state = state_named(json.at("state"))};
  for (const auto& [key, value] : json.at("settings").items()) {
    row.settings.push_back({key, value.get<std::string>()});
  }
  row.reason = json.value("reason", "");
  row.exit_code = json.value("exit_code", 0);
  row.steps = whole_number(json.at("steps"));
  row.seconds = json.at("seconds").get<double>();
  if (json.contains("rungs")) {
    for (const Json& value : json.at("rungs")) row.at_rungs.push_back(number_or_nan(value));
  }
  if (json.contains("validation")) {
    const Json& found = json.at("validation");
    row.score = TrialScore{.value = found.at("value").get<double>(),
                           .step = whole_number(found.at("step")),
                           .epoch = found.at("epoch").get<double>(),
                           .evaluation = found.at("evaluation")};
  }
  if (json.contains("test")) row.test = json.at("test");
  return row;
}

std::string to_string(TrialState state) {
  for (const auto& [other, text] : kStates) {
    if (other == state) return text;
  }
  return "";
}

Json to_json(const TrialRow& row, const std::string& measure) {
  Json settings = Json::object();
  for (const Setting& setting : row.settings) settings[setting.key] = setting.value;
  Json json{{"trial", row.number}, {"settings", settings}, {"state", to_string(row.state)}};
  if (!row.reason.empty()) json["reason"] = row.reason;
  if (row.exit_code != 0) json["exit_code"] = row.exit_code;
  if (row.score) {
    json["validation"] = {{"measure", measure},
                          {"value", row.score->value},
                          {"step", row.score->step},
                          {"epoch", row.score->epoch},
                          {"evaluation", row.score->evaluation}};
  }
  if (!row.at_rungs.empty()) {
    json["rungs"] = Json::array();
    for (const double value : row.at_rungs) json["rungs"].push_back(json_number(value));
  }
  if (!row.test.is_null()) json["test"] = row.test;
  json["steps"] = row.steps;
  json["seconds"] = row.seconds;
  return json;
}

TrialRow read_row(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    return parse_row(parse_json<Json>(text));
  } catch (const Json::exception& error) {
    throw DataError(
        fmt::format("'{}' is not the row of a trial ({}): remove it, and the trial goes on from "
                    "its checkpoint",
                    file.string(), error.what()));
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("'{}' is not the row of a trial: {}; remove it, and the trial goes on from its "
                    "checkpoint",
                    file.string(), error.what()));
  }
}

std::optional<TrialScore> read_score(const RunDirectory& run, const Measure& measure, bool keeps_best) {
  std::optional<TrialScore> score;
  read_metrics_lines(run.metrics(), [&](const MetricsLine& line) {
    const double found = line.split == "validation" ? line.number(measure.name()) : NAN;
    if (!std::isfinite(found)) return;
    if (score && keeps_best && !measure.is_better(found, score->value)) return;
    score = TrialScore{.value = found,
                       .step = static_cast<Index>(line.step),
                       .epoch = line.epoch,
                       .evaluation = measures_in(line)};
  });
  return score;
}

void add_result(TrialRow& row, const RunDirectory& run) {
  const std::optional<RunRecord> record = read_run_record(run);
  if (!record) throw DataError(fmt::format("'{}' is missing", run.record().string()));
  row.steps = record->progress.steps;
  row.seconds = record->seconds;
  read_metrics_lines(run.metrics(), [&](const MetricsLine& line) {
    if (line.split == "test") row.test = measures_in(line);
  });
}

bool is_before(const TrialRow& a, const TrialRow& b, const Measure& measure) {
  if (a.score.has_value() != b.score.has_value()) return a.score.has_value();
  if (a.score && a.score->value != b.score->value) return measure.is_better(a.score->value, b.score->value);
  return a.number < b.number;
}

}  // namespace lockstep
