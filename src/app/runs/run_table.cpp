#include "read_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "app/setup/catalogs.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/base/table.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/storage/run_directory.h"

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

// Runs of the same bits have the same; "" before there are any.
std::string hash_of_weights(const ViewedRun& run) {
  const std::filesystem::path model = RunDirectory{run.name}.model();
  return is_there(model) ? fmt::format("{:016x}", hash_text(read_file(model))) : "";
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

// The value that sorts runs: those that lack it stand last, runs of one measure together, numbers before
// texts.
using SortValue = std::tuple<bool, std::string, bool, double, std::string>;

SortValue value_of(std::optional<double> number, const std::string& text = "",
                   const std::string& measure = "") {
  return {!number && text.empty(), measure, !number, number.value_or(0), number ? "" : text};
}

SortValue sort_value(const ViewedRun& run, const std::string& by) {
  const DecidingFigure* const best = run.record.decides();
  if (by == "best" && best == nullptr) return value_of({});
  if (by == "best") {  // those of validation sets first
    const char* const first = best->split == "validation" ? "" : "~";
    return value_of(turned(best->value, best->measure), "", first + label_of(run));
  }
  if (by == "run") return value_of({}, run.name);
  if (by == "steps") return value_of(run.steps());
  if (by == "seconds") return value_of(run.record.seconds);
  if (find_option(known_options(), by) != nullptr) return value_of(as_number(run.value(by)), run.value(by));
  return value_of(turned(value_in(run.record.figures, main_split(run), by), by));
}

// A cell of a table that is `width` characters wide at most: a third of it, or what many columns can have.
std::string value_cell(const std::string& text, int width) {
  const std::size_t most = width == kAllColumns ? 200 : static_cast<std::size_t>(std::max(29, width / 3));
  if (text.empty()) return "-";
  std::string shown = excerpt(text, most);
  if (text.size() > most) shown.erase(shown.rfind(" ("));  // how long it is
  return shown;
}

bool any_has_other_last(const std::vector<ViewedRun>& runs, const std::string& split) {
  return std::ranges::any_of(runs, [&](const ViewedRun& run) { return has_other_last(run, split); });
}

// A text on the measure that decides; nothing before there is one.
template <class Text>
std::function<std::string(const ViewedRun&)> of_best(Text text) {
  return [text](const ViewedRun& run) {
    const DecidingFigure* best = run.record.decides();
    return best == nullptr ? std::string() : text(run, *best);
  };
}

// All measures that any run has of the set, `of` the kept or the last weights. `format`: of the values.
// `positive`: the class of all runs; where it is "", each cell names its own.
void add_figures(Columns& columns, const std::vector<ViewedRun>& runs, const std::string& prefix,
                 const std::string& split, Figures RunRecord::*of, fmt::format_string<double&> format,
                 const std::optional<std::string>& positive = std::nullopt) {
  for (const std::string& measure : measure_columns(runs)) {
    const auto value = [=](const ViewedRun& run) { return value_in(run.record.*of, split, measure); };
    const auto has_value = [&](const ViewedRun& run) { return value(run).has_value(); };
    if (std::ranges::none_of(runs, has_value)) continue;
    const bool names_class = positive && positive->empty();
    columns.push_back({prefix + name_with_class(measure, positive.value_or("")), [=](const ViewedRun& run) {
                         std::optional<double> number = value(run);
                         const std::string positive_of_run = names_class ? run.record.positive : "";
                         const std::string of_class = name_with_class(measure, positive_of_run);
                         return number ? fmt::format(format, *number) + of_class.substr(measure.size()) : "";
                       }});
  }
}

// Keys in the order in which they explain most.
std::vector<std::string> explaining_keys(const std::vector<ViewedRun>& runs, bool all) {
  constexpr std::array<std::string_view, 8> kFirst{
      "train.optimizer", "train.lr",     "train.global_batch", "train.per_replica_batch",
      "model.layers",    "model.preset", "train.loss",         "distribute.strategy"};
  std::vector<std::string> keys = differing_keys(runs, all);
  const auto explains_nothing = [](const std::string& key) {
    return key.starts_with("checkpoint.") || key.starts_with("comm.") ||
           (key.starts_with("run.") && key != "run.seed");
  };
  if (!all) std::erase_if(keys, explains_nothing);
  std::ranges::stable_sort(keys, {}, [&](const std::string& key) { return std::ranges::find(kFirst, key); });
  return keys;
}

// The columns for runs of one data set and loss, the most telling first.
Columns shown_columns(const std::vector<ViewedRun>& runs, std::size_t directory, bool all) {
  const std::string best = common_text(runs, label_of);
  Columns columns{{"run", [directory](const ViewedRun& run) { return run.name.substr(directory); }},
                  {"best " + best, of_best([best](const ViewedRun& run, const DecidingFigure& figure) {
                     return fmt::format("{}{:.5g}", best.empty() ? label_of(run) + " " : "", figure.value);
                   })}};
  const auto is_done = [](const ViewedRun& run) { return run.record.state == RunState::kDone; };
  if (all || !std::ranges::all_of(runs, is_done)) {
    columns.push_back({"state", [](const ViewedRun& run) {
                         return run.state() + (run.record.reason.empty() ? "" : ": " + run.record.reason);
                       }});
  }
  for (const std::string& key : explaining_keys(runs, all))
    columns.push_back({key, [key](const ViewedRun& run) { return run.value(key); }});
  if (any_has_other_last(runs, "validation")) {
    columns.push_back({"last " + best, of_best([](const ViewedRun& run, const DecidingFigure& figure) {
                         const auto last = value_in(run.record.last, figure.split, figure.measure);
                         return last ? fmt::format("{:.5g}", *last) : "";
                       })});
  }
  std::set<std::string> splits;
  for (const ViewedRun& run : runs) splits.insert(main_split(run));
  for (const std::string& split : splits)
    add_figures(columns, runs, split + " ", split, &RunRecord::figures, "{:.5g}",
                common_text(runs, [](const ViewedRun& run) { return run.record.positive; }));
  // The measure that decides stands there as the best already, unless a temperature has changed it since.
  const auto is_best = [](const ViewedRun& run) {
    const DecidingFigure* figure = run.record.decides();
    return figure == nullptr ||
           value_in(run.record.figures, figure->split, figure->measure).value_or(figure->value) ==
               figure->value;
  };
  if (std::ranges::all_of(runs, is_best))
    std::erase_if(columns, [&](const auto& each) { return each.head == best; });
  columns.push_back({"at step", of_best([](const ViewedRun&, const DecidingFigure& figure) {
                       return with_commas(figure.step);
                     })});
  columns.push_back({"steps", [](const ViewedRun& run) { return with_commas(run.record.progress.steps); }});
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
  const auto add = [&](const char* part, const Figures& all) {
    for (const auto& [split, figures] : all) {
      for (const auto& [name, value] : figures.values) json[part][split][name] = value;
    }
  };
  add("figures", record.figures);
  add("last", record.last);
  return json;
}

constexpr std::size_t kMaxHead = 4;  // lines

// A head in short lines: its words, and of a key the section above the name.
Cells head_lines(const std::string& head) {
  constexpr std::size_t kMaxLine = 10;
  Cells lines(1);
  for (std::size_t begin = 0; begin < head.size();) {
    const std::size_t end = std::min(head.find_first_of(" .", begin), head.size() - 1) + 1;
    const std::string part = head.substr(begin, end - begin);
    const bool full = !lines.back().empty() && lines.back().size() + trimmed(part).size() > kMaxLine;
    if (full && lines.size() < kMaxHead) lines.emplace_back();
    lines.back() += part;
    begin = end;
  }
  for (std::string& line : lines) line = trimmed(line);
  lines.insert(lines.begin(), kMaxHead - lines.size(), "");
  return lines;
}

// As many of the columns as have room, and the names of the others.
std::string fitting_table(const Columns& columns, const std::vector<ViewedRun>& runs, int width) {
  std::vector<Cells> rows(kMaxHead + runs.size());
  std::vector<std::string> left_out;
  std::size_t used = 0;
  for (const auto& [head, cell] : columns) {
    Cells cells = head_lines(head);
    for (const ViewedRun& run : runs) cells.push_back(value_cell(cell(run), width));
    const std::size_t widest = std::ranges::max(cells, {}, &std::string::size).size();
    if (used + widest > static_cast<std::size_t>(width)) {
      left_out.emplace_back(trimmed(head));
      continue;
    }
    used += widest + 2;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(cells[i]);
  }
  const auto is_empty = [](const Cells& row) { return std::ranges::all_of(row, &std::string::empty); };
  std::erase_if(rows, is_empty);
  const std::string rest = fmt::format("not shown: {}; --all shows all\n", fmt::join(left_out, ", "));
  return text_table(rows) + (left_out.empty() ? "" : wrap_lines(rest, width));
}

}  // namespace

void sort_runs(std::vector<ViewedRun>& runs, const std::string& by) {
  std::vector<std::string> known = measure_columns(runs);
  known.insert(known.begin(), {"best", "run", "steps", "seconds"});
  if (find_option(known_options(), by) == nullptr && std::ranges::count(known, by) == 0) {
    const std::string nearest = nearest_name(by, known);
    const std::string hint =
        nearest.empty() ? suggest_key(by, known_options()) : fmt::format("did you mean '{}'?", nearest);
    throw ConfigError(fmt::format("--sort: there is no key and no measure {}{}{}; measures here: {}",
                                  in_quotes(by), hint.empty() ? "" : "; ", hint, fmt::join(known, ", ")));
  }
  std::ranges::stable_sort(runs, {}, [&](const ViewedRun& run) { return sort_value(run, by); });
}

std::string to_text(const std::vector<ViewedRun>& runs, int width) {
  std::map<std::string, std::vector<ViewedRun>> groups;
  for (const ViewedRun& run : runs) {
    const std::string data = run.value("data.train");
    groups[fmt::format("data: {}, loss: {}",
                       value_cell(data.empty() ? run.value("data.format") : data, width),
                       value_cell(run.value("train.loss"), width))]
        .push_back(run);
  }
  std::string text;
  for (const auto& [title, group] : groups) {
    if (groups.size() > 1) text += (text.empty() ? "" : "\n") + title + "\n";
    text += fitting_table(shown_columns(group, common_directory(runs).size(), width == kAllColumns), group,
                          width);
  }
  return text;
}

std::string to_csv(const std::vector<ViewedRun>& runs) {
  Columns columns{{"run", [](const ViewedRun& run) { return run.name; }},
                  {"state", [](const ViewedRun& run) { return run.state(); }},
                  {"reason", [](const ViewedRun& run) { return run.record.reason; }}};
  for (const std::string& key : explaining_keys(runs, true)) {
    columns.push_back({key, [key](const ViewedRun& run) { return run.value(key); }});
  }
  const auto seconds = [](const ViewedRun& run) {
    return run.record.seconds > 0 ? fmt::format("{}", run.record.seconds) : "";
  };
  using Best = const DecidingFigure&;
  columns.insert(
      columns.end(),
      {{"steps", [](const ViewedRun& run) { return fmt::format("{}", run.record.progress.steps); }},
       {"seconds", seconds},
       {"best_split", of_best([](const ViewedRun&, Best best) { return best.split; })},
       {"best_measure", of_best([](const ViewedRun&, Best best) { return best.measure; })},
       {"best_value", of_best([](const ViewedRun&, Best best) { return fmt::format("{}", best.value); })},
       {"best_step", of_best([](const ViewedRun&, Best best) { return fmt::format("{}", best.step); })},
       {"commit", [](const ViewedRun& run) { return run.record.commit; }},
       {"ranks", [](const ViewedRun& run) { return fmt::format("{}", run.record.plan.ranks); }},
       {"cpu", [](const ViewedRun& run) { return run.record.launch.cpu; }},
       {"weights", hash_of_weights}});
  for (const std::string split : {"validation", "test"}) {
    add_figures(columns, runs, split + "_", split, &RunRecord::figures, "{}");
    if (any_has_other_last(runs, split))
      add_figures(columns, runs, "last_" + split + "_", split, &RunRecord::last, "{}");
  }
  return csv_table(table_of(columns, runs));
}

std::string compared_json(const std::vector<ViewedRun>& runs) {
  const std::vector<std::string> keys = differing_keys(runs);
  Json all = Json::array();
  for (const ViewedRun& run : runs) all.push_back(run_json(run, keys));
  return indented(all);
}

}  // namespace lockstep
