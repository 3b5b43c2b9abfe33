#include "sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"

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
           "data.validation = \"share(0.1)\"\n";
  }
  const std::string run = directory.trial(best->number).root.string();
  return fmt::format(
      "best: {}, validation {} {:.6g} after epoch {:.2f}; use it: trainer predict --model {} --input DATA "
      "--output FILE\n",
      directory.name(best->number), measure.name(), best->score->value, best->score->epoch, run);
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

}  // namespace lockstep
