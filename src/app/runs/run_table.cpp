#include "run_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/setup/catalogs.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/train/evaluation/early_stopping.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

// The set of the last evaluation that tells most: the test set, which chose nothing.
std::string main_split(const ViewedRun& run) {
  return run.record.last.contains("test")         ? "test"
         : run.record.last.contains("validation") ? "validation"
                                                  : "";
}

std::optional<double> last_value(const ViewedRun& run, const std::string& measure) {
  const auto last = run.record.last.find(main_split(run));
  return last == run.record.last.end() ? std::nullopt : find_metric(last->second.values, measure);
}

std::optional<double> as_number(const std::string& text) {
  return ValueType<double>::parse(text);
}

// A value that runs are sorted by: numbers before texts.
struct SortValue {
  std::optional<double> number;
  std::string text;

  bool missing() const { return !number && text.empty(); }
  bool operator<(const SortValue& other) const {
    if (missing() != other.missing()) return other.missing();
    if (number.has_value() != other.number.has_value()) return number.has_value();
    return number ? *number < *other.number : text < other.text;
  }
};

std::vector<std::string> measure_columns(const std::vector<ViewedRun>& runs) {
  std::vector<std::string> names;
  for (const ViewedRun& run : runs) {
    for (const auto& [split, last] : run.record.last) {
      for (const auto& [name, value] : last.values) {
        if (std::ranges::count(names, name) == 0) names.push_back(name);
      }
    }
  }
  return names;
}

// Makes less be better.
std::optional<double> turned(std::optional<double> value, const std::string& measure) {
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return smaller_is_better(measure) ? *value : -*value;
}

using Value = std::function<SortValue(const ViewedRun&)>;

Value value_by(const std::string& by, const std::vector<ViewedRun>& runs) {
  if (by == "best") {
    return [](const ViewedRun& run) -> SortValue {
      const DecidingFigure* best = run.record.decides();
      return best == nullptr ? SortValue{} : SortValue{turned(best->value, best->measure), ""};
    };
  }
  if (by == "run") return [](const ViewedRun& run) -> SortValue { return {std::nullopt, run.name}; };
  if (by == "steps") return [](const ViewedRun& run) -> SortValue { return {run.steps(), ""}; };
  if (by == "seconds") return [](const ViewedRun& run) -> SortValue { return {run.record.seconds, ""}; };
  const std::vector<std::string> measures = measure_columns(runs);
  if (std::ranges::count(measures, by) > 0) {
    return [by](const ViewedRun& run) -> SortValue { return {turned(last_value(run, by), by), ""}; };
  }
  std::vector<std::string> known{"best", "run", "steps", "seconds"};
  known.insert(known.end(), measures.begin(), measures.end());
  for (const Option& option : known_options()) {
    if (option.key == by) {
      return [by](const ViewedRun& run) -> SortValue {
        const std::string value = run.value(by);
        const std::optional<double> number = as_number(value);
        return {number, number ? "" : value};
      };
    }
  }
  const std::string key = suggest_key(by, known_options());
  const std::string nearest = nearest_name(by, known);
  throw ConfigError(fmt::format("--sort: there is no key and no measure {}{}; measures here: {}",
                                in_quotes(by),
                                !nearest.empty() ? fmt::format("; did you mean '{}'?", nearest)
                                : key.empty()    ? ""
                                                 : fmt::format("; {}", key),
                                fmt::join(known, ", ")));
}

std::string shown(double value) {
  return fmt::format("{:.5g}", value);
}

// "validation auc"; "" without a value.
std::string label_of(const ViewedRun& run) {
  const DecidingFigure* best = run.record.decides();
  return best == nullptr ? "" : best->split + " " + best->measure;
}

// One label if all that have a best value have it of the same measure, else "".
std::string common_measure(const std::vector<ViewedRun>& runs) {
  std::set<std::string> labels;
  for (const ViewedRun& run : runs) {
    const std::string label = label_of(run);
    if (!label.empty()) labels.insert(label);
  }
  return labels.size() == 1 ? *labels.begin() : "";
}

std::string best_cell(const ViewedRun& run, bool common) {
  const DecidingFigure* best = run.record.decides();
  if (best == nullptr) return "-";
  return (common ? "" : label_of(run) + " ") + shown(best->value);
}

std::string value_cell(const std::string& text) {
  constexpr std::size_t kMaxBytes = 40;
  return text.empty() ? "-" : excerpt(text, kMaxBytes);
}

std::string csv_line(const Row& row) {
  Row cells;
  for (const std::string& cell : row) cells.push_back(csv_cell(cell));
  return fmt::format("{}\n", fmt::join(cells, ","));
}

std::string exact(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : "";
}

// "validation_auc", of all that any run has.
std::vector<std::pair<std::string, std::string>> columns_of_last(const std::vector<ViewedRun>& runs) {
  std::vector<std::pair<std::string, std::string>> columns;
  for (const char* split : {"validation", "test"}) {
    for (const std::string& measure : measure_columns(runs)) {
      const bool is_measured = std::ranges::any_of(runs, [&](const ViewedRun& run) {
        const auto last = run.record.last.find(split);
        return last != run.record.last.end() && find_metric(last->second.values, measure);
      });
      if (is_measured) columns.emplace_back(split, measure);
    }
  }
  return columns;
}

Json run_json(const ViewedRun& run, const std::vector<std::string>& keys) {
  const RunRecord& record = run.record;
  Json json{{"run", run.name}, {"state", run.state()}};
  if (!record.reason.empty()) json["reason"] = record.reason;
  json["steps"] = record.progress.steps;
  if (record.seconds > 0) json["seconds"] = record.seconds;
  json["config"] = Json::object();
  for (const std::string& key : keys) {
    const std::string value = run.value(key);
    const std::optional<double> number = as_number(value);
    json["config"][key] = value.empty() ? Json(nullptr) : number ? Json(*number) : Json(value);
  }
  if (const DecidingFigure* best = record.decides()) {
    json["best"] = {
        {"split", best->split}, {"measure", best->measure}, {"value", best->value}, {"step", best->step}};
  }
  for (const auto& [split, last] : record.last) {
    for (const auto& [name, value] : last.values) json["last"][split][name] = value;
  }
  return json;
}

}  // namespace

std::vector<std::string> differing_keys(const std::vector<ViewedRun>& runs) {
  std::vector<std::string> keys;
  for (const Option& option : known_options()) {
    if (names_no_result(option.key)) continue;
    std::set<std::string> values;
    for (const ViewedRun& run : runs) {
      if (!run.config.empty()) values.insert(run.value(option.key));
    }
    if (values.size() > 1) keys.push_back(option.key);
  }
  return keys;
}

void sort_runs(std::vector<ViewedRun>& runs, const std::string& by) {
  const Value value = value_by(by, runs);
  const auto measure = [&by](const ViewedRun& run) { return by == "best" ? label_of(run) : ""; };
  std::ranges::stable_sort(runs, [&](const ViewedRun& a, const ViewedRun& b) {
    const bool a_missing = value(a).missing();
    if (a_missing != value(b).missing()) return !a_missing;
    if (measure(a) != measure(b)) return measure(a) > measure(b);  // those of validation sets first
    return value(a) < value(b);
  });
}

std::string to_text(const std::vector<ViewedRun>& runs) {
  constexpr std::size_t kMaxKeys = 8;
  std::vector<std::string> keys = differing_keys(runs);
  const std::size_t all = keys.size();
  keys.resize(std::min(all, kMaxKeys));
  const std::string common = common_measure(runs);
  std::vector<std::string> measures;
  for (const std::string& measure : measure_columns(runs)) {
    if (std::ranges::any_of(runs, [&](const ViewedRun& run) { return last_value(run, measure).has_value(); }))
      measures.push_back(measure);
  }
  Row head{"run"};
  head.insert(head.end(), keys.begin(), keys.end());
  head.insert(head.end(), {common.empty() ? "best" : fmt::format("best {}", common), "at step", "steps"});
  for (const std::string& measure : measures) head.push_back(fmt::format("last {}", measure));
  head.push_back("state");
  std::vector<Row> rows{head};
  for (const ViewedRun& run : runs) {
    Row row{run.name};
    for (const std::string& key : keys) row.push_back(value_cell(run.value(key)));
    const DecidingFigure* best = run.record.decides();
    row.insert(row.end(), {best_cell(run, !common.empty()), best == nullptr ? "-" : with_commas(best->step),
                           with_commas(run.record.progress.steps)});
    for (const std::string& measure : measures) {
      const std::optional<double> value = last_value(run, measure);
      row.push_back(value ? shown(*value) : "-");
    }
    const std::string& reason = run.record.reason;
    row.push_back(reason.empty() ? run.state() : fmt::format("{}: {}", run.state(), excerpt(reason, 120)));
    rows.push_back(row);
  }
  std::string text = text_table(rows);
  if (all > kMaxKeys) text += fmt::format("{} more keys differ: --csv and --json have all\n", all - kMaxKeys);
  return text;
}

std::string to_csv(const std::vector<ViewedRun>& runs) {
  const std::vector<std::string> keys = differing_keys(runs);
  const auto last = columns_of_last(runs);
  Row head{"run", "state", "reason"};
  head.insert(head.end(), keys.begin(), keys.end());
  head.insert(head.end(), {"steps", "seconds", "best_split", "best_measure", "best_value", "best_step"});
  for (const auto& [split, measure] : last) head.push_back(fmt::format("{}_{}", split, measure));
  std::string text = csv_line(head);
  for (const ViewedRun& run : runs) {
    const RunRecord& record = run.record;
    const DecidingFigure* best = record.decides();
    Row row{run.name, run.state(), record.reason};
    for (const std::string& key : keys) row.push_back(run.value(key));
    row.push_back(fmt::format("{}", record.progress.steps));
    row.push_back(record.seconds > 0 ? fmt::format("{}", record.seconds) : "");
    row.push_back(best == nullptr ? "" : best->split);
    row.push_back(best == nullptr ? "" : best->measure);
    row.push_back(best == nullptr ? "" : exact(best->value));
    row.push_back(best == nullptr ? "" : fmt::format("{}", best->step));
    for (const auto& [split, measure] : last) {
      const auto values = record.last.find(split);
      row.push_back(values == record.last.end() ? "" : exact(find_metric(values->second.values, measure)));
    }
    text += csv_line(row);
  }
  return text;
}

std::string compared_json(const std::vector<ViewedRun>& runs) {
  const std::vector<std::string> keys = differing_keys(runs);
  Json all = Json::array();
  for (const ViewedRun& run : runs) all.push_back(run_json(run, keys));
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep
