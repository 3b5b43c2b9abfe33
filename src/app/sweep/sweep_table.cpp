#include "sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {
namespace {

using Cells = std::vector<std::string>;

std::vector<TrialRow> ranked(std::span<const TrialRow> rows, const Measure& measure) {
  std::vector<TrialRow> sorted(rows.begin(), rows.end());
  std::ranges::sort(sorted, [&](const TrialRow& a, const TrialRow& b) {
    const auto in_race = [](const TrialRow& row) { return row.state != TrialState::kDropped; };
    return in_race(a) != in_race(b) ? in_race(a) : is_before(a, b, measure);
  });
  return sorted;
}

std::string test_cell(const TrialRow& row, const std::string& name) {
  const auto value = row.test.is_object() ? row.test.find(name) : row.test.end();
  if (!row.test.is_object() || value == row.test.end() || !value->is_number()) return "";
  return fmt::format("{:.4f}", value->get<double>());
}

std::vector<std::string> settings_keys(std::span<const TrialRow> rows) {
  std::vector<std::string> keys;
  if (rows.empty()) return keys;
  for (const Setting& setting : rows.front().settings) keys.push_back(setting.key);
  return keys;
}

// "loss", and the measure if it is another.
std::vector<std::string> test_measures(std::span<const TrialRow> rows, const Measure& measure) {
  std::vector<std::string> names{"loss", "accuracy"};
  if (std::ranges::find(names, measure.name()) == names.end()) names.push_back(measure.name());
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::all_of(rows, [&](const TrialRow& row) { return test_cell(row, name).empty(); });
  });
  return names;
}

std::string describe_failures(std::span<const TrialRow> rows, const SweepDirectory& directory) {
  std::string text;
  for (const TrialRow& row : rows) {
    if (row.state != TrialState::kFailed) continue;
    text += fmt::format("{} failed with exit code {}: {}\n", directory.name(row.number), row.exit_code,
                        row.reason);
  }
  if (text.empty()) return "";
  return text +
         fmt::format("a failed trial is tried again when its row is removed: rm {}/trial-NUMBER.json\n",
                     directory.rows().string());
}

std::string describe_best(const std::vector<TrialRow>& sorted, const Measure& measure,
                          const SweepDirectory& directory) {
  const auto best = std::ranges::find(sorted, TrialState::kDone, &TrialRow::state);
  if (best == sorted.end()) return "";
  if (!best->score) {
    return "there is no validation set, so that no trial is the best: hold some records back with "
           "data.validation_share = 0.1\n";
  }
  const std::string run = directory.trial(best->number).root.string();
  return fmt::format(
      "best: {}, validation {} {:.6g} after epoch {:.2f}; use it: trainer predict --model {} --input DATA "
      "--output FILE\n",
      directory.name(best->number), measure.name(), best->score->value, best->score->epoch, run);
}

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

std::string sweep_table(std::span<const TrialRow> rows, const Measure& measure,
                        const SweepDirectory& directory) {
  const std::vector<TrialRow> sorted = ranked(rows, measure);
  const std::vector<std::string> keys = settings_keys(rows);
  const std::vector<std::string> tests = test_measures(rows, measure);
  std::vector<Cells> table{{"run"}};
  table[0].insert(table[0].end(), keys.begin(), keys.end());
  table[0].insert(table[0].end(), {"validation " + measure.name(), "epoch"});
  for (const std::string& name : tests) table[0].push_back("test " + name);
  table[0].insert(table[0].end(), {"steps", "time", "state"});
  for (const TrialRow& row : sorted) {
    Cells cells{directory.name(row.number)};
    for (const Setting& setting : row.settings) cells.push_back(setting.value);
    cells.push_back(row.score ? fmt::format("{:.4f}", row.score->value) : "");
    cells.push_back(row.score ? fmt::format("{:.2f}", row.score->epoch) : "");
    for (const std::string& name : tests) cells.push_back(test_cell(row, name));
    const bool done = row.state == TrialState::kDone;
    cells.push_back(done ? with_commas(row.steps) : "");
    cells.push_back(done ? human_seconds(row.seconds) : "");
    cells.push_back(to_string(row.state));
    table.push_back(std::move(cells));
  }
  std::string text =
      text_table(table, 1) + describe_failures(rows, directory) + describe_best(sorted, measure, directory);
  text.pop_back();  // the log ends the line itself
  return text;
}

nlohmann::ordered_json sweep_json(std::span<const TrialRow> rows, const Measure& measure,
                                  const SweepDirectory& directory) {
  nlohmann::ordered_json json{{"measure", measure.name()}, {"trials", nlohmann::ordered_json::array()}};
  const std::vector<TrialRow> sorted = ranked(rows, measure);
  for (const TrialRow& row : sorted) {
    nlohmann::ordered_json entry = to_json(row, measure.name());
    entry["run"] = directory.name(row.number);
    json["trials"].push_back(entry);
  }
  const auto best = std::ranges::find(sorted, TrialState::kDone, &TrialRow::state);
  if (best != sorted.end() && best->score) json["best"] = directory.name(best->number);
  return json;
}

namespace {

// The measures that every finished fold has, the one that chooses the weights first.
std::vector<std::string> fold_measures(std::span<const TrialRow> folds, const Measure& measure) {
  if (std::ranges::none_of(folds, [](const TrialRow& row) { return row.score.has_value(); })) return {};
  std::vector<std::string> names{measure.name()};
  for (const TrialRow& row : folds) {
    if (!row.score) continue;
    for (const auto& [name, value] : row.score->evaluation.items()) {
      if (name != "samples" && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(
        folds, [&](const TrialRow& row) { return row.score && !row.score->evaluation.contains(name); });
  });
  return names;
}

struct MeanAndDeviation {
  double mean = 0;
  double deviation = 0;
};

MeanAndDeviation over_folds(std::span<const TrialRow> folds, const std::string& name) {
  std::vector<double> values;
  for (const TrialRow& row : folds) {
    if (row.score) values.push_back(row.score->evaluation.at(name).get<double>());
  }
  MeanAndDeviation found;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) found.mean += value / count;
  for (const double value : values) found.deviation += (value - found.mean) * (value - found.mean);
  found.deviation = values.size() > 1 ? std::sqrt(found.deviation / (count - 1)) : 0;
  return found;
}

}  // namespace

std::string folds_table(std::span<const TrialRow> folds, const Measure& measure,
                        const SweepDirectory& directory) {
  const std::vector<std::string> names = fold_measures(folds, measure);
  std::vector<Cells> table{{"run", "records"}};
  for (const std::string& name : names) table[0].push_back("validation " + name);
  table[0].insert(table[0].end(), {"epoch", "state"});
  for (const TrialRow& row : folds) {
    Cells cells{directory.name(row.number)};
    cells.push_back(row.score ? with_commas(row.score->evaluation.value("samples", Index{0})) : "");
    for (const std::string& name : names) {
      cells.push_back(row.score ? fmt::format("{:.4f}", row.score->evaluation.at(name).get<double>()) : "");
    }
    cells.push_back(row.score ? fmt::format("{:.2f}", row.score->epoch) : "");
    cells.push_back(to_string(row.state));
    table.push_back(std::move(cells));
  }
  Cells mean{"mean", ""};
  Cells deviation{"standard deviation", ""};
  for (const std::string& name : names) {
    const MeanAndDeviation found = over_folds(folds, name);
    mean.push_back(fmt::format("{:.4f}", found.mean));
    deviation.push_back(fmt::format("{:.4f}", found.deviation));
  }
  if (!names.empty()) {
    for (Cells* row : {&mean, &deviation}) {
      row->resize(table[0].size());
      table.push_back(*row);
    }
  }
  std::string text = text_table(table, 1) + describe_failures(folds, directory);
  text.pop_back();
  return text;
}

nlohmann::ordered_json folds_json(std::span<const TrialRow> rows, const Measure& measure,
                                  const SweepDirectory& directory) {
  nlohmann::ordered_json json{{"measure", measure.name()}, {"trials", nlohmann::ordered_json::array()}};
  for (const TrialRow& row : rows) {
    nlohmann::ordered_json entry = to_json(row, measure.name());
    entry["run"] = directory.name(row.number);
    json["trials"].push_back(entry);
  }
  const std::span<const TrialRow> folds = rows.first(rows.size() - (directory.refit > 0 ? 1 : 0));
  for (const std::string& name : fold_measures(folds, measure)) {
    const MeanAndDeviation found = over_folds(folds, name);
    json["mean"][name] = found.mean;
    json["standard_deviation"][name] = found.deviation;
  }
  return json;
}

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
  const auto test = record->last.find("test");
  if (test == record->last.end()) return;
  row.test = Json::object();
  for (const auto& [name, value] : test->second.values) row.test[name] = value;
}

bool is_before(const TrialRow& a, const TrialRow& b, const Measure& measure) {
  if (a.score.has_value() != b.score.has_value()) return a.score.has_value();
  if (a.score && a.score->value != b.score->value) return measure.is_better(a.score->value, b.score->value);
  return a.number < b.number;
}

}  // namespace lockstep
