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

// Its numbers by name, without those that say when it was made.
Json measures_in(const Json& evaluation) {
  Json measures = Json::object();
  for (const auto& [name, value] : evaluation.items()) {
    const bool other =
        name == "step" || name == "epoch" || name == "samples_seen" || name == "seconds" || name == "top_k";
    if (value.is_number() && !other) measures[name] = value;
  }
  return measures;
}

Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
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
  std::error_code ignored;
  if (!std::filesystem::exists(run.metrics(), ignored)) return std::nullopt;
  std::optional<TrialScore> score;
  std::istringstream lines(read_file(run.metrics()));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("split", "") != "validation") continue;
    const auto value = json.find(measure.name());
    if (value == json.end() || !value->is_number() || !std::isfinite(value->get<double>())) continue;
    const double found = value->get<double>();
    if (score && keeps_best && !measure.is_better(found, score->value)) continue;
    score = TrialScore{.value = found,
                       .step = json.value("step", Index{0}),
                       .epoch = json.value("epoch", 0.0),
                       .evaluation = measures_in(json)};
  }
  return score;
}

void add_summary(TrialRow& row, const RunDirectory& run) {
  try {
    const Json json = parse_json<Json>(read_file(run.summary()));
    row.steps = json.value("steps", Index{0});
    row.seconds = json.value("seconds", 0.0);
    if (json.contains("evaluation") && json["evaluation"].value("split", "") == "test") {
      row.test = measures_in(json["evaluation"]);
    }
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("'{}' is no summary of a run: {}", run.summary().string(), error.what()));
  }
}

bool is_before(const TrialRow& a, const TrialRow& b, const Measure& measure) {
  if (a.score.has_value() != b.score.has_value()) return a.score.has_value();
  if (a.score && a.score->value != b.score->value) return measure.is_better(a.score->value, b.score->value);
  return a.number < b.number;
}

}  // namespace lockstep
