#include "trial_rows.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/storage/model_file.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStates{"waiting", "stopped", "paused", "dropped", "failed", "done"};  // as TrialState

TrialState state_named(const std::string& name) {
  const auto found = std::ranges::find(kStates, name);
  if (found == kStates.end()) throw DataError("'{}' is no state of a trial", name);
  return static_cast<TrialState>(found - kStates.begin());
}

// Its numbers by name, those of the samples too.
Json measures_in(const MetricsLine& evaluation) {
  Json measures = Json::object();
  for (const auto& [name, value] : evaluation.values) {
    if (name == "samples") measures[name] = static_cast<Index>(value);
    if (is_measure(name)) measures[name] = json_number(value);
  }
  return measures;
}

// Another part of the sweep may have its lock, and be about to write sweep.toml under a name that begins so.
void refuse_foreign(const SweepDirectory& directory) {
  std::error_code ignored;
  if (is_there(directory.description())) return;
  const std::string own = directory.description().filename().string();
  for (const auto& entry : std::filesystem::directory_iterator(directory.root, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(own) || name.starts_with("lock")) continue;
    const bool is_run = is_there(RunDirectory{directory.root}.config());
    throw ConfigError("run.dir '{}' {}: name another directory for the sweep", directory.root.string(),
                      is_run ? "is the directory of a run" : "is not empty, and no sweep is in it");
  }
}

void make_directory(const std::filesystem::path& path) {
  std::error_code error;
  create_synced_directories(path, error);
  if (error) throw DataError("cannot create '{}': {}", path.string(), error.message());
}

using Columns = std::vector<ShownColumn<TrialRow>>;

std::vector<TrialRow> ranked(std::span<const TrialRow> rows, const Measure& measure) {
  std::vector<TrialRow> sorted(rows.begin(), rows.end());
  std::ranges::sort(sorted, [&](const TrialRow& a, const TrialRow& b) {
    const auto in_race = [](const TrialRow& row) { return row.state != TrialState::kDropped; };
    return in_race(a) != in_race(b) ? in_race(a) : is_before(a, b, measure);
  });
  return sorted;
}

std::string measure_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "undefined";
}

double measured(const Json& measures, const std::string& name) {
  const auto found = measures.find(name);
  return found != measures.end() && found->is_number() ? found->get<double>() : NAN;
}

// "0.2500", "undefined"; "" where it was not measured.
std::string measure_cell(const Json& measures, const std::string& name) {
  return measures.is_object() && measures.contains(name) ? measure_text(measured(measures, name)) : "";
}

// The class that measures in the head of a table are about, which the model of a run names; "" if none does.
std::string positive_of(std::span<const TrialRow> rows, const SweepDirectory& directory) {
  const auto has_model = [&](const TrialRow& row) {
    return row.state == TrialState::kDone && is_there(directory.trial(row.number).model());
  };
  const auto run = std::ranges::find_if(rows, has_model);
  if (run == rows.end()) return "";
  return ModelFile(directory.trial(run->number).model()).fact(kPositiveFact).value_or("");
}

std::string epoch_cell(const TrialRow& row) {
  return row.score ? fmt::format("{:.2f}", row.score->epoch) : "";
}

std::string state_cell(const TrialRow& row) {
  return to_string(row.state);
}

std::string describe_failures(std::span<const TrialRow> rows, const SweepDirectory& directory) {
  std::string text;
  Index passing = 0;
  Index lasting = 0;
  for (const TrialRow& row : rows) {
    if (row.state != TrialState::kFailed) continue;
    text += fmt::format("{} failed with exit code {}: {}\n", directory.name(row.number), row.exit_code,
                        row.reason);
    (row.may_pass() ? passing : lasting) += 1;
  }
  if (passing > 0) {
    text += fmt::format("the same command tries {} again\n", plural(passing, directory.word));
  }
  if (lasting > 0) {
    text += fmt::format("{} is tried again when its row is removed: rm {}/{}-NUMBER.json\n",
                        passing > 0 ? "another" : fmt::format("a failed {}", directory.word),
                        directory.rows().string(), directory.word);
  }
  return text;
}

std::string describe_best(const std::vector<TrialRow>& sorted, const Measure& measure,
                          const SweepDirectory& directory) {
  const auto best = std::ranges::find(sorted, TrialState::kDone, &TrialRow::state);
  if (best == sorted.end()) return "";
  if (best->score && !best->is_measured()) {
    return fmt::format("no trial is the best: validation {} is undefined in all of them\n", measure.name());
  }
  if (!best->score) {
    return "there is no validation set, so that no trial is the best: hold some records back with "
           "data.validation = \"share(0.1)\"\n";
  }
  const std::string run = directory.trial(best->number).root.string();
  return fmt::format(
      "best: {}, validation {} {:.6g} after epoch {:.2f}; use it: trainer predict {} --input DATA "
      "--output FILE\n",
      directory.name(best->number), measure.name(), best->score->value, best->score->epoch, run);
}

Json rows_json(std::span<const TrialRow> rows, const Measure& measure, const SweepDirectory& directory) {
  Json json{{"measure", measure.name()}, {"trials", Json::array()}};
  for (const TrialRow& row : rows) {
    json["trials"].push_back(to_json(row, measure.name()));
    json["trials"].back()["run"] = directory.name(row.number);
  }
  return json;
}

// The measures of the folds, the one that chooses the weights first.
std::vector<std::string> fold_measures(std::span<const TrialRow> folds, const Measure& measure) {
  if (std::ranges::none_of(folds, [](const TrialRow& row) { return row.score.has_value(); })) return {};
  std::vector<std::string> names{measure.name()};
  for (const TrialRow& row : folds) {
    if (!row.score) continue;
    for (const auto& [name, value] : row.score->evaluation.items()) {
      if (name != "samples" && std::ranges::count(names, name) == 0) names.push_back(name);
    }
  }
  return names;
}

// Over the folds in which the measure is defined; NaN where there are too few for it.
struct MeanAndDeviation {
  Index folds = 0;
  double mean = NAN;
  double deviation = NAN;
};

MeanAndDeviation over_folds(std::span<const TrialRow> folds, const std::string& name) {
  std::vector<double> values;
  for (const TrialRow& row : folds) {
    const double value = row.score ? measured(row.score->evaluation, name) : NAN;
    if (std::isfinite(value)) values.push_back(value);
  }
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.folds = std::ssize(values),
          .mean = mean,
          .deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : NAN};
}

}  // namespace

std::string SweepDirectory::name(Index trial) const {
  return trial == refit ? "refit" : fmt::format("{}-{:04}", word, trial);
}

std::filesystem::path SweepDirectory::lock() const {
  return root / (parts == 1 ? "lock" : fmt::format("lock-{}", part));
}

std::filesystem::path SweepDirectory::claims() const {
  return rows() / (parts == 1 ? "claims" : fmt::format("claims-{}", part));
}

RunLock SweepDirectory::open(const std::function<std::string(const std::string& before)>& describe) const {
  refuse_foreign(*this);
  make_directory(root);
  RunLock held(lock(), fmt::format("run.dir '{}'", root.string()));
  const std::string before = is_there(description()) ? read_file(description()) : "";
  const std::string text = describe(before);
  if (text != before) write_file_atomically(description(), text);
  std::error_code ignored;
  std::filesystem::remove_all(claims(), ignored);
  std::filesystem::remove(stop(), ignored);
  make_directory(claims());
  return held;
}

bool SweepDirectory::claim(Index trial, Index rung) const {
  const std::filesystem::path file = claims() / fmt::format("{}-{}", name(trial), rung);
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor >= 0) {
    ::close(descriptor);
    return true;
  }
  if (errno == EEXIST) return false;
  throw DataError("cannot create '{}': {}", file.string(), std::strerror(errno));
}

bool TrialRow::may_pass() const {
  return state == TrialState::kFailed && (exit_code == kExitData || exit_code == kExitComm || was_held);
}

TrialRow parse_row(const Json& json) {
  TrialRow row{.number = whole_number(json.at("trial")), .state = state_named(json.at("state"))};
  for (const auto& [key, value] : json.at("settings").items()) {
    row.settings.push_back({key, value.get<std::string>()});
  }
  row.reason = json.value("reason", "");
  row.exit_code = json.value("exit_code", 0);
  row.was_held = json.value("was_held", false);
  row.steps = whole_number(json.at("steps"));
  row.seconds = json.at("seconds").get<double>();
  for (const Json& value : json.value("rungs", Json::array()))
    row.at_rungs.push_back(value.is_number() ? value.get<double>() : NAN);
  if (json.contains("validation")) {
    const Json& found = json.at("validation");
    row.score = TrialScore{.value = measured(found, "value"),
                           .step = whole_number(found.at("step")),
                           .epoch = found.at("epoch").get<double>(),
                           .evaluation = found.at("evaluation")};
  }
  if (json.contains("test")) row.test = json.at("test");
  return row;
}

std::string to_string(TrialState state) {
  return kStates[static_cast<std::size_t>(state)];
}

Json to_json(const TrialRow& row, const std::string& measure) {
  Json settings = Json::object();
  for (const Setting& setting : row.settings) settings[setting.key] = setting.value;
  Json json{{"trial", row.number}, {"settings", settings}, {"state", to_string(row.state)}};
  if (!row.reason.empty()) json["reason"] = row.reason;
  if (row.exit_code != 0) json["exit_code"] = row.exit_code;
  if (row.was_held) json["was_held"] = true;
  if (row.score) {
    json["validation"] = {{"measure", measure},
                          {"value", json_number(row.score->value)},
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
    return read_json(text, parse_row);
  } catch (const DataError& error) {
    throw DataError(
        "'{}' is not the row of a trial: {}; remove it, and the trial goes on from its checkpoint",
        file.string(), error.what());
  }
}

std::optional<TrialScore> read_score(const RunDirectory& run, const Measure& measure, bool keeps_best) {
  std::optional<TrialScore> score;
  read_metrics_lines(run.metrics(), [&](const MetricsLine& line) {
    if (line.split != "validation") return;
    const double found = line.number(measure.name());
    const bool is_better = !score || std::isnan(score->value) ||
                           (std::isfinite(found) && measure.is_better(found, score->value));
    if (keeps_best && !is_better) return;
    score = TrialScore{.value = found,
                       .step = static_cast<Index>(line.step),
                       .epoch = line.epoch,
                       .evaluation = measures_in(line)};
  });
  return score;
}

void add_result(TrialRow& row, const RunDirectory& run, const Measure& measure) {
  const std::optional<RunRecord> record = read_run_record(run);
  if (!record) throw DataError("'{}' is missing", run.record().string());
  row.steps = record->progress.steps;
  row.seconds = record->seconds;
  if (const auto kept = record->figures.find("validation"); row.score && kept != record->figures.end()) {
    for (const auto& [name, value] : kept->second.values) row.score->evaluation[name] = value;
    row.score->value = find_metric(kept->second.values, measure.name()).value_or(row.score->value);
  }
  read_metrics_lines(run.metrics(), [&](const MetricsLine& line) {
    if (line.split == "test") row.test = measures_in(line);
  });
}

bool is_before(const TrialRow& a, const TrialRow& b, const Measure& measure) {
  if (a.is_measured() != b.is_measured()) return a.is_measured();
  if (a.is_measured() && a.score->value != b.score->value)
    return measure.is_better(a.score->value, b.score->value);
  return a.number < b.number;
}

std::string sweep_table(std::span<const TrialRow> rows, const Measure& measure,
                        const SweepDirectory& directory) {
  Columns columns{{"run", [&](const TrialRow& row) { return directory.name(row.number); }}};
  const std::string positive = positive_of(rows, directory);
  const std::size_t keys = rows.empty() ? 0 : rows.front().settings.size();  // all trials vary the same ones
  for (std::size_t i = 0; i < keys; ++i) {
    columns.push_back(
        {rows.front().settings[i].key, [i](const TrialRow& row) { return row.settings[i].value; }});
  }
  columns.push_back({"validation " + name_with_class(measure.name(), positive),
                     [](const TrialRow& row) { return row.score ? measure_text(row.score->value) : ""; }});
  columns.push_back({"epoch", epoch_cell});
  std::vector<std::string> names{"loss", "accuracy"};
  if (std::ranges::count(names, measure.name()) == 0) names.push_back(measure.name());
  for (const std::string& name : names) {
    const auto cell = [name](const TrialRow& row) { return measure_cell(row.test, name); };
    if (std::ranges::all_of(rows, &std::string::empty, cell)) continue;
    columns.push_back({"test " + name_with_class(name, positive), cell});
  }
  const auto is_done = [](const TrialRow& row) { return row.state == TrialState::kDone; };
  columns.push_back(
      {"steps", [=](const TrialRow& row) { return is_done(row) ? with_commas(row.steps) : ""; }});
  columns.push_back(
      {"time", [=](const TrialRow& row) { return is_done(row) ? human_seconds(row.seconds) : ""; }});
  columns.push_back({"state", state_cell});
  const std::vector<TrialRow> sorted = ranked(rows, measure);
  std::string text = text_table(table_of(columns, sorted), 1) + describe_failures(rows, directory) +
                     describe_best(sorted, measure, directory);
  text.pop_back();  // the log ends the line itself
  return text;
}

Json sweep_json(std::span<const TrialRow> rows, const Measure& measure, const SweepDirectory& directory) {
  const std::vector<TrialRow> sorted = ranked(rows, measure);
  Json json = rows_json(sorted, measure, directory);
  const auto best = std::ranges::find(sorted, TrialState::kDone, &TrialRow::state);
  if (best != sorted.end() && best->is_measured()) json["best"] = directory.name(best->number);
  return json;
}

std::string folds_table(std::span<const TrialRow> folds, const Measure& measure,
                        const SweepDirectory& directory) {
  const auto of_score = [](const auto& text) {
    return [text](const TrialRow& row) { return row.score ? text(*row.score) : std::string(); };
  };
  Columns columns{{"run", [&](const TrialRow& row) { return directory.name(row.number); }},
                  {"records", of_score([](const TrialScore& score) {
                     return with_commas(score.evaluation.value("samples", Index{0}));
                   })}};
  const std::vector<std::string> names = fold_measures(folds, measure);
  const std::string positive = positive_of(folds, directory);
  Cells mean{"mean", ""};
  Cells deviation{"standard deviation", ""};
  for (const std::string& name : names) {
    columns.push_back(
        {"validation " + name_with_class(name, positive), of_score([name](const TrialScore& score) {
           return measure_text(measured(score.evaluation, name));
         })});
    const MeanAndDeviation found = over_folds(folds, name);
    const bool of_some = found.folds > 0 && found.folds < std::ssize(folds);
    mean.push_back(measure_text(found.mean) +
                   (of_some ? fmt::format(" ({} of {} folds)", found.folds, folds.size()) : ""));
    deviation.push_back(std::isfinite(found.deviation) ? fmt::format("{:.4f}", found.deviation) : "-");
  }
  columns.insert(columns.end(), {{"epoch", epoch_cell}, {"state", state_cell}});
  std::vector<Cells> table = table_of(columns, folds);
  if (!names.empty()) table.insert(table.end(), {mean, deviation});
  for (Cells& cells : table) cells.resize(columns.size());
  std::string text = text_table(table, 1) + describe_failures(folds, directory);
  text.pop_back();
  return text;
}

Json folds_json(std::span<const TrialRow> rows, const Measure& measure, const SweepDirectory& directory) {
  Json json = rows_json(rows, measure, directory);
  const std::span<const TrialRow> folds = rows.first(rows.size() - (directory.refit > 0 ? 1 : 0));
  for (const std::string& name : fold_measures(folds, measure)) {
    const MeanAndDeviation found = over_folds(folds, name);
    json["mean"][name] = json_number(found.mean);
    json["standard_deviation"][name] = json_number(found.deviation);
    json["folds"][name] = found.folds;
  }
  return json;
}

}  // namespace lockstep
