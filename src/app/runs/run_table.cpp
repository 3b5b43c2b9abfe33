#include "read_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "app/setup/catalogs.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Columns = std::vector<ShownColumn<ViewedRun>>;

using Figures = std::map<std::string, EvaluationFigures>;

// The set that tells most: the test set, which chose nothing.
std::string main_split(const ViewedRun& run) {
  return run.record.figures.contains("test")         ? "test"
         : run.record.figures.contains("validation") ? "validation"
                                                     : "";
}

std::optional<double> value_in(const Figures& figures, const std::string& split, const std::string& measure) {
  const auto found = figures.find(split);
  return found == figures.end() ? std::nullopt : find_metric(found->second.values, measure);
}

// One text if it is the same of all runs that have one, else "".
std::string common_text(const std::vector<ViewedRun>& runs, std::string (*text_of)(const ViewedRun&)) {
  std::set<std::string> texts;
  for (const ViewedRun& run : runs) texts.insert(text_of(run));
  texts.erase("");
  return texts.size() == 1 ? *texts.begin() : "";
}

std::optional<double> as_number(const std::string& text) {
  return ValueType<double>::parse(text);
}

// A value that runs are sorted by: numbers before texts, and those without one last.
struct SortValue {
  std::string measure;  // runs of one stand together; "" where it does not matter
  std::optional<double> number;
  std::string text;

  bool missing() const { return !number && text.empty(); }
  bool operator<(const SortValue& other) const {
    if (missing() != other.missing()) return other.missing();
    if (measure != other.measure) return measure > other.measure;  // those of validation sets first
    if (number.has_value() != other.number.has_value()) return number.has_value();
    return number ? *number < *other.number : text < other.text;
  }
};

std::vector<std::string> measure_columns(const std::vector<ViewedRun>& runs) {
  std::vector<std::string> names;
  for (const ViewedRun& run : runs) {
    for (const auto& [split, figures] : run.record.figures) {
      for (const auto& [name, value] : figures.values) {
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

// "validation auc"; "" without a value.
std::string label_of(const ViewedRun& run) {
  const DecidingFigure* best = run.record.decides();
  return best == nullptr ? "" : best->split + " " + name_with_class(best->measure, run.record.positive);
}

using Value = std::function<SortValue(const ViewedRun&)>;

Value value_by(const std::string& by, const std::vector<ViewedRun>& runs) {
  if (by == "best") {
    return [](const ViewedRun& run) -> SortValue {
      const DecidingFigure* best = run.record.decides();
      return best == nullptr ? SortValue{} : SortValue{label_of(run), turned(best->value, best->measure), ""};
    };
  }
  if (by == "run") return [](const ViewedRun& run) -> SortValue { return {"", std::nullopt, run.name}; };
  if (by == "steps") return [](const ViewedRun& run) -> SortValue { return {"", run.steps(), ""}; };
  if (by == "seconds") return [](const ViewedRun& run) -> SortValue { return {"", run.record.seconds, ""}; };
  const std::vector<std::string> measures = measure_columns(runs);
  if (std::ranges::count(measures, by) > 0) {
    return [by](const ViewedRun& run) -> SortValue {
      return {"", turned(value_in(run.record.figures, main_split(run), by), by), ""};
    };
  }
  std::vector<std::string> known{"best", "run", "steps", "seconds"};
  known.insert(known.end(), measures.begin(), measures.end());
  for (const Option& option : known_options()) {
    if (option.key == by) {
      return [by](const ViewedRun& run) -> SortValue {
        const std::string value = run.value(by);
        const std::optional<double> number = as_number(value);
        return {"", number, number ? "" : value};
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

std::string best_cell(const ViewedRun& run, bool common) {
  const DecidingFigure* best = run.record.decides();
  if (best == nullptr) return "-";
  return (common ? "" : label_of(run) + " ") + shown(best->value);
}

std::string value_cell(const std::string& text) {
  constexpr std::size_t kMaxBytes = 40;
  return text.empty() ? "-" : excerpt(text, kMaxBytes);
}

std::string exact(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : "";
}

bool any_has_other_last(const std::vector<ViewedRun>& runs, const std::string& split) {
  return std::ranges::any_of(runs, [&](const ViewedRun& run) { return has_other_last(run, split); });
}

// "validation_auc" of the kept weights, and of the last ones where they are others: of all that any run has.
void add_figures(Columns& columns, const std::vector<ViewedRun>& runs, const std::string& prefix,
                 Figures RunRecord::*of) {
  for (const std::string split : {"validation", "test"}) {
    if (!prefix.empty() && !any_has_other_last(runs, split)) continue;
    for (const std::string& measure : measure_columns(runs)) {
      const auto value = [=](const ViewedRun& run) { return value_in(run.record.*of, split, measure); };
      const auto has_value = [&](const ViewedRun& run) { return value(run).has_value(); };
      if (std::ranges::none_of(runs, has_value)) continue;
      columns.push_back({fmt::format("{}{}_{}", prefix, split, measure),
                         [value](const ViewedRun& run) { return exact(value(run)); }});
    }
  }
}

// The measures of the kept weights, and the one that decides of the last weights where they are others.
void add_result(Columns& columns, const std::vector<ViewedRun>& runs) {
  const std::string split = common_text(runs, main_split);
  const std::string positive = common_text(runs, [](const ViewedRun& run) { return run.record.positive; });
  for (const std::string& measure : measure_columns(runs)) {
    const auto value = [measure](const ViewedRun& run) {
      return value_in(run.record.figures, main_split(run), measure);
    };
    const std::string name = name_with_class(measure, positive);
    if (std::ranges::none_of(runs, [&](const ViewedRun& run) { return value(run).has_value(); })) continue;
    columns.push_back({split.empty() ? name : fmt::format("{} {}", split, name),
                       [value, measure, positive, common = !split.empty()](const ViewedRun& run) {
                         const auto of_run = positive.empty() ? run.record.positive : "";
                         return value(run) ? (common ? "" : main_split(run) + " ") + shown(*value(run)) +
                                                 name_with_class(measure, of_run).substr(measure.size())
                                           : "-";
                       }});
  }
  if (!any_has_other_last(runs, "validation")) return;
  const std::string label = common_text(runs, label_of);
  columns.push_back({label.empty() ? "last" : fmt::format("last {}", label), [label](const ViewedRun& run) {
                       const DecidingFigure* best = run.record.decides();
                       if (best == nullptr) return std::string("-");
                       const auto last = value_in(run.record.last, best->split, best->measure);
                       return last ? (label.empty() ? label_of(run) + " " : "") + shown(*last) : "-";
                     }});
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
  const auto add = [&](const char* part, const Figures& all) {
    for (const auto& [split, figures] : all) {
      for (const auto& [name, value] : figures.values) json[part][split][name] = value;
    }
  };
  add("figures", record.figures);
  add("last", record.last);
  return json;
}

}  // namespace

void sort_runs(std::vector<ViewedRun>& runs, const std::string& by) {
  std::ranges::stable_sort(runs, std::less<>(), value_by(by, runs));
}

std::string to_text(const std::vector<ViewedRun>& runs) {
  constexpr std::size_t kMaxKeys = 8;
  std::vector<std::string> keys = differing_keys(runs);
  const std::size_t all = keys.size();
  keys.resize(std::min(all, kMaxKeys));
  const std::string common = common_text(runs, label_of);
  Columns columns{{"run", [](const ViewedRun& run) { return run.name; }}};
  for (const std::string& key : keys) {
    columns.push_back({key, [key](const ViewedRun& run) { return value_cell(run.value(key)); }});
  }
  columns.push_back({common.empty() ? "best" : fmt::format("best {}", common),
                     [&](const ViewedRun& run) { return best_cell(run, !common.empty()); }});
  columns.push_back({"at step", [](const ViewedRun& run) {
                       const DecidingFigure* best = run.record.decides();
                       return best == nullptr ? "-" : with_commas(best->step);
                     }});
  columns.push_back({"steps", [](const ViewedRun& run) { return with_commas(run.record.progress.steps); }});
  add_result(columns, runs);
  columns.push_back({"state", [](const ViewedRun& run) {
                       const std::string& reason = run.record.reason;
                       return run.state() + (reason.empty() ? "" : ": " + excerpt(reason, 120));
                     }});
  std::string text = text_table(table_of(columns, runs));
  if (all > kMaxKeys) text += fmt::format("{} more keys differ: --csv and --json have all\n", all - kMaxKeys);
  return text;
}

std::string to_csv(const std::vector<ViewedRun>& runs) {
  Columns columns{{"run", [](const ViewedRun& run) { return run.name; }},
                  {"state", [](const ViewedRun& run) { return run.state(); }},
                  {"reason", [](const ViewedRun& run) { return run.record.reason; }}};
  for (const std::string& key : differing_keys(runs)) {
    columns.push_back({key, [key](const ViewedRun& run) { return run.value(key); }});
  }
  const auto of_best = [](const auto& text) {
    return [text](const ViewedRun& run) {
      const DecidingFigure* best = run.record.decides();
      return best == nullptr ? std::string() : text(*best);
    };
  };
  const auto seconds = [](const ViewedRun& run) {
    return run.record.seconds > 0 ? fmt::format("{}", run.record.seconds) : "";
  };
  columns.insert(
      columns.end(),
      {{"steps", [](const ViewedRun& run) { return fmt::format("{}", run.record.progress.steps); }},
       {"seconds", seconds},
       {"best_split", of_best([](const DecidingFigure& best) { return best.split; })},
       {"best_measure", of_best([](const DecidingFigure& best) { return best.measure; })},
       {"best_value", of_best([](const DecidingFigure& best) { return exact(best.value); })},
       {"best_step", of_best([](const DecidingFigure& best) { return fmt::format("{}", best.step); })}});
  add_figures(columns, runs, "", &RunRecord::figures);
  add_figures(columns, runs, "last_", &RunRecord::last);
  return csv_table(table_of(columns, runs));
}

std::string compared_json(const std::vector<ViewedRun>& runs) {
  const std::vector<std::string> keys = differing_keys(runs);
  Json all = Json::array();
  for (const ViewedRun& run : runs) all.push_back(run_json(run, keys));
  return indented(all);
}

}  // namespace lockstep
