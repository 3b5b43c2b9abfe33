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
#include <utility>

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

// The data and the loss: runs that have both alike are compared.
using DataAndLoss = std::pair<std::string, std::string>;

DataAndLoss data_and_loss(const ViewedRun& run) {
  const std::string data = run.value("data.train");
  return {data.empty() ? run.value("data.format") : data, run.value("train.loss")};
}

constexpr const char* kBits = "bits_per_character";

// The texts that runs divide into different tokens, so that measures per token cannot be compared.
std::set<DataAndLoss> texts_of_other_tokens(const std::vector<ViewedRun>& runs) {
  std::map<DataAndLoss, std::set<std::string>> tokens;
  for (const ViewedRun& run : runs) {
    if (!run.refused) tokens[data_and_loss(run)].insert(run.value("data.tokens"));
  }
  std::set<DataAndLoss> texts;
  for (const auto& [text, kinds] : tokens) {
    if (kinds.size() > 1) texts.insert(text);
  }
  return texts;
}

// On such texts bits per character decide. A run that replaces unknown tokens has no bits for these.
void decide_by_characters(std::vector<ViewedRun>& runs) {
  const std::set<DataAndLoss> texts = texts_of_other_tokens(runs);
  for (ViewedRun& run : runs) {
    const DecidingFigure* const decides = run.record.decides();
    if (decides == nullptr || !texts.contains(data_and_loss(run))) continue;
    const std::string split = decides->split;
    const auto bits = value_in(run.record.figures, split, kBits);
    if (!bits || run.value("data.unknown") == "replace") continue;
    const Index step = run.record.figures[split].step;
    run.record.deciding[split] = {.split = split, .measure = kBits, .value = *bits, .step = step};
  }
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

// The longest cell of a table of this width: a third of it, or what many columns can have.
std::size_t max_cell(int width) {
  return width == kAllColumns ? 200 : static_cast<std::size_t>(std::max(29, width / 3));
}

std::string value_cell(const std::string& text, int width) {
  const std::size_t most = max_cell(width);
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

// All measures that any run has of the set. `positive`: the class of all runs; where it is "", each cell
// names its own.
void add_figures(Columns& columns, const std::vector<ViewedRun>& runs, const std::string& split,
                 const std::string& positive) {
  for (const std::string& measure : measure_columns(runs)) {
    const auto value = [=](const ViewedRun& run) { return value_in(run.record.figures, split, measure); };
    if (std::ranges::none_of(runs, [&](const ViewedRun& run) { return value(run).has_value(); })) continue;
    columns.push_back({split + " " + name_with_class(measure, positive), [=](const ViewedRun& run) {
                         const std::optional<double> number = value(run);
                         const std::string own = positive.empty() ? run.record.positive : "";
                         const std::string of_class = name_with_class(measure, own).substr(measure.size());
                         return number ? fmt::format("{:.5g}{}", *number, of_class) : "";
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
Columns shown_columns(const std::vector<ViewedRun>& runs, int width) {
  const bool all = width == kAllColumns;
  const std::string best = common_text(runs, label_of);
  const std::size_t directory = common_directory(runs).size();
  Columns columns{
      {"run", [=](const ViewedRun& run) { return end_of(run.name.substr(directory), max_cell(width)); }},
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
    add_figures(columns, runs, split,
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

// A run as --json has it and, in one row, --csv.
Json run_json(const ViewedRun& run, const std::vector<std::string>& keys) {
  const RunRecord& record = run.record;
  Json json{{"run", run.name}, {"state", run.state()}, {"reason", record.reason}, {"config", Json::object()}};
  for (const std::string& key : keys) {
    const std::string value = run.value(key);
    const std::optional<double> number = as_number(value);
    json["config"][key] = value.empty() ? Json(nullptr) : number ? Json(*number) : Json(value);
  }
  json["steps"] = record.progress.steps;
  json["seconds"] = record.seconds > 0 ? Json(record.seconds) : Json(nullptr);
  if (const DecidingFigure* best = record.decides()) {
    json["best"] = {
        {"split", best->split}, {"measure", best->measure}, {"value", best->value}, {"step", best->step}};
  }
  json.update({{"commit", record.commit},
               {"ranks", record.plan.ranks},
               {"cpu", record.launch.cpu},
               {"weights", hash_of_weights(run)}});
  const auto add = [&](const char* part, const Figures& all) {
    for (const auto& [split, figures] : all) {
      for (const auto& [name, value] : figures.values) json[part][split][name] = value;
    }
  };
  add("figures", record.figures);
  add("last", record.last);
  return json;
}

// The values in an object by their names: "best_step" in a part, but "train.lr" and "test_loss".
void flatten(const Json& json, const std::string& prefix, std::map<std::string, std::string>& cells,
             Cells& names) {
  for (const auto& [name, value] : json.items()) {
    const std::string path = prefix + name;
    if (value.is_object()) {
      flatten(value, name == "config" || name == "figures" ? prefix : path + "_", cells, names);
      continue;
    }
    if (std::ranges::count(names, path) == 0) names.push_back(path);
    cells[path] = value.is_null()           ? ""
                  : value.is_string()       ? value.get<std::string>()
                  : value.is_number_float() ? fmt::format("{}", value.get<double>())
                                            : value.dump();
  }
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
  decide_by_characters(runs);
  std::vector<std::string> known = measure_columns(runs);
  known.insert(known.begin(), {"best", "run", "steps", "seconds"});
  if (find_option(known_options(), by) == nullptr && std::ranges::count(known, by) == 0) {
    const std::string nearest = nearest_name(by, known);
    const std::string hint =
        nearest.empty() ? suggest_key(by, known_options()) : fmt::format("did you mean '{}'?", nearest);
    throw ConfigError("--sort: there is no key and no measure {}{}{}; measures here: {}", in_quotes(by),
                      hint.empty() ? "" : "; ", hint, fmt::join(known, ", "));
  }
  std::ranges::stable_sort(runs, {}, [&](const ViewedRun& run) { return sort_value(run, by); });
}

std::string to_text(const std::vector<ViewedRun>& runs, int width) {
  const std::set<DataAndLoss> texts = texts_of_other_tokens(runs);
  std::map<DataAndLoss, std::vector<ViewedRun>> groups;
  for (const ViewedRun& run : runs) {
    DataAndLoss group = data_and_loss(run);
    const DecidingFigure* const best = run.record.decides();
    const bool of_tokens = texts.contains(group) && best != nullptr && best->measure != kBits;
    if (of_tokens) {
      group.second += fmt::format(" of {} ({} is not {})", run.value("data.tokens"), kBits,
                                  run.value("data.unknown") == "replace" ? "of all tokens" : "measured");
    }
    groups[group].push_back(run);
  }
  std::string text;
  for (const auto& [group_name, group] : groups) {
    if (groups.size() > 1) {
      text += fmt::format("{}data: {}, loss: {}\n", text.empty() ? "" : "\n",
                          value_cell(group_name.first, width), excerpt(group_name.second));
    }
    text += fitting_table(shown_columns(group, width), group, width);
  }
  return text;
}

std::string to_csv(const std::vector<ViewedRun>& runs) {
  const std::vector<std::string> keys = explaining_keys(runs, true);
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<Cells> table(1);
  for (const ViewedRun& run : runs) {
    Json json = run_json(run, keys);
    for (const std::string& key : keys) json["config"][key] = run.value(key);  // as it was written
    for (const auto& [split, last] : run.record.last) {
      if (!any_has_other_last(runs, split)) json["last"].erase(split);
    }
    flatten(json, "", rows.emplace_back(), table.front());
  }
  for (auto& cells : rows) {
    table.emplace_back();
    for (const std::string& name : table.front()) table.back().push_back(cells[name]);
  }
  return csv_table(table);
}

std::string compared_json(const std::vector<ViewedRun>& runs) {
  const std::vector<std::string> keys = differing_keys(runs);
  Json all = Json::array();
  for (const ViewedRun& run : runs) all.push_back(run_json(run, keys));
  return indented(all);
}

}  // namespace lockstep
