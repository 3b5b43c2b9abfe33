#include "lockstep/report/tables/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/json.h"
#include "lockstep/base/table.h"
#include "lockstep/train/evaluation/early_stopping.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct NamedScore {
  std::string name;
  ClassScore score;
};

std::vector<NamedScore> named_scores(const EvalMetrics& metrics) {
  std::vector<ClassScore> scores;
  if (!metrics.confusion.empty()) {
    scores = class_scores(as_square(metrics.confusion, metrics.classes));
  }
  constexpr std::size_t kCells = 4;  // no and yes, by truth and prediction
  for (std::size_t begin = 0; begin < metrics.answers.size(); begin += kCells) {
    scores.push_back(class_scores(as_square(std::span(metrics.answers).subspan(begin, kCells), 2)).back());
  }
  std::vector<NamedScore> named;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    named.push_back({i < metrics.names.size() ? metrics.names[i] : fmt::format("{}", i), scores[i]});
  }
  return named;
}

std::string share_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.4f}", share) : "-";
}

std::string class_table(const EvalMetrics& metrics) {
  const std::vector<NamedScore> scores = named_scores(metrics);
  if (scores.empty() || std::ssize(scores) > kMaxClassesShown) return "";
  std::vector<Cells> rows{{metrics.classes > 0 ? "class" : "output", "precision", "recall", "f1", "samples"}};
  for (const auto& [name, score] : scores) {
    rows.push_back({excerpt(name), share_text(score.precision), share_text(score.recall),
                    share_text(score.f1), with_commas(score.samples)});
  }
  return text_table(rows, 1);
}

std::string reliability_table(const EvalMetrics& metrics) {
  if (metrics.reliability.empty()) return "";
  const std::string yes = metrics.positive().empty() ? "yes" : in_quotes(metrics.positive());
  std::vector<Cells> rows{
      {metrics.classes > 2 ? "probability of the predicted class" : "probability of " + yes, "mean",
       metrics.classes > 2 ? "share that is right" : "share of " + yes,
       metrics.answers.empty() && metrics.classes > 0 ? "samples" : "targets"}};
  for (const ReliabilityBin& bin : metrics.reliability) {
    rows.push_back({fmt::format("{:.3f} to {:.3f}", bin.from, bin.to), fmt::format("{:.4f}", bin.predicted),
                    fmt::format("{:.4f}", bin.observed), with_commas(bin.count)});
  }
  return text_table(rows, 1);
}

// "falls" or "rises": what a measure does that gets worse.
const char* worse(const std::string& measure) {
  return smaller_is_better(measure) ? "rises" : "falls";
}

}  // namespace

std::string evaluation_tables(const EvalMetrics& metrics) {
  return class_table(metrics) + reliability_table(metrics);
}

Json json_with_tables(const EvalMetrics& metrics) {
  Json json = evaluation_json(metrics);
  const std::vector<NamedScore> scores = named_scores(metrics);
  for (const auto& [name, score] : scores) {
    json["per_class"].push_back({{metrics.classes > 0 ? "class" : "output", name},
                                 {"precision", json_number(score.precision)},
                                 {"recall", json_number(score.recall)},
                                 {"f1", json_number(score.f1)},
                                 {"samples", score.samples}});
  }
  for (const ReliabilityBin& bin : metrics.reliability) {
    json["reliability"].push_back({{"from", bin.from},
                                   {"to", bin.to},
                                   {"samples", bin.count},
                                   {"predicted", json_number(bin.predicted)},
                                   {"observed", json_number(bin.observed)}});
  }
  if (!metrics.forecast.by_step.empty()) json["forecast"] = json_of_errors(metrics.forecast);
  return json;
}

Json json_of_errors(const ForecastErrors& errors) {
  Json json = Json::array();
  const auto add = [&](const std::string& name, double absolute, const std::vector<double>& by_step) {
    json.push_back({{"name", name}, {"mean_absolute_error", json_number(absolute)}, {"by_step", by_step}});
  };
  if (!errors.by_step.empty()) add("the model", errors.absolute(), errors.by_step);
  for (const NaiveForecast& each : errors.naive) {
    add("repeating " + each.name, each.absolute, each.by_step);
    json.back()["squared_error"] = json_number(each.squared);
  }
  return json;
}

std::string class_name(const std::vector<std::string>& names, std::size_t index) {
  return index < names.size() ? fmt::format("{} ({})", index, names[index]) : fmt::format("{}", index);
}

std::vector<ClassScore> class_scores(const ConfusionMatrix& confusion) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<ClassScore> scores(confusion.size());
  for (std::size_t i = 0; i < confusion.size(); ++i) {
    Index predicted = 0;
    for (const std::vector<Index>& row : confusion) predicted += row[i];
    for (const Index samples : confusion[i]) scores[i].samples += samples;
    const auto right = static_cast<double>(confusion[i][i]);
    const auto of = [&](Index all) { return all > 0 ? right / static_cast<double>(all) : kNaN; };
    const double both = static_cast<double>(predicted + scores[i].samples);
    scores[i].precision = of(predicted);
    scores[i].recall = of(scores[i].samples);
    scores[i].f1 = both > 0 ? 2 * right / both : kNaN;
  }
  return scores;
}

std::string to_text(const ImportanceResult& result) {
  const Importance& found = result.importance;
  std::vector<Cells> rows{{"column", "importance", "deviation"}};
  for (const ColumnImportance& column : found.columns) {
    rows.push_back({excerpt(column.name), fmt::format("{:.6f}", column.mean()),
                    fmt::format("{:.6f}", column.deviation())});
  }
  return fmt::format(
      "{}: {}, {} {:.6f}\nimportance of a column: by how much the {} {} when its values are shuffled "
      "(mean of {})\n{}",
      result.set, plural(found.samples, "sample"), result.measure, found.baseline, result.measure,
      worse(result.measure), plural(std::ssize(found.columns.front().losses), "repeat"), text_table(rows, 1));
}

std::string to_csv(const ImportanceResult& result) {
  std::vector<Cells> table{{"column", "importance", "deviation"}};
  for (std::size_t i = 1; i <= result.importance.columns.front().losses.size(); ++i) {
    table.front().push_back(fmt::format("repeat_{}", i));
  }
  for (const ColumnImportance& column : result.importance.columns) {
    table.push_back({column.name, fmt::format("{}", column.mean()), fmt::format("{}", column.deviation())});
    for (const double loss : column.losses) table.back().push_back(fmt::format("{}", loss));
  }
  return csv_table(table);
}

std::string to_json(const ImportanceResult& result) {
  const Importance& found = result.importance;
  Json columns = Json::array();
  for (const ColumnImportance& column : found.columns) {
    columns.push_back({{"column", column.name},
                       {"importance", column.mean()},
                       {"deviation", column.deviation()},
                       {"repeats", column.losses}});
  }
  return indented(Json{{"model", result.model},
                       {"set", result.set},
                       {"samples", found.samples},
                       {"measure", result.measure},
                       {"smaller_is_better", smaller_is_better(result.measure)},
                       {"baseline", found.baseline},
                       {"columns", columns}});
}

std::string to_text(const DependenceResult& result) {
  constexpr std::size_t kMaxShown = 10;  // outputs in a terminal
  const std::size_t shown = std::min(kMaxShown, result.outputs.size());
  std::vector<Cells> rows{{excerpt(result.column)}};
  for (std::size_t i = 0; i < shown; ++i) rows.front().push_back(excerpt(result.outputs[i]));
  for (std::size_t row = 0; row < result.grid.size(); ++row) {
    rows.push_back({excerpt(result.grid[row].text)});
    for (std::size_t i = 0; i < shown; ++i)
      rows.back().push_back(fmt::format("{:.6g}", result.means[row][i]));
  }
  return fmt::format("{}: {}; mean prediction, if all of them had one value of {}\n{}{}", result.set,
                     plural(result.samples, "sample"), in_quotes(result.column), text_table(rows, 1),
                     shown < result.outputs.size()
                         ? plural(std::ssize(result.outputs) - Index(shown), "more output") +
                               ": --csv and --json have them\n"
                         : "");
}

std::string to_csv(const DependenceResult& result) {
  std::vector<Cells> table{{result.column}};
  table.front().insert(table.front().end(), result.outputs.begin(), result.outputs.end());
  for (std::size_t row = 0; row < result.grid.size(); ++row) {
    table.push_back({result.grid[row].text});
    for (const double mean : result.means[row]) table.back().push_back(fmt::format("{}", mean));
  }
  return csv_table(table);
}

std::string to_json(const DependenceResult& result) {
  Json points = Json::array();
  for (std::size_t row = 0; row < result.grid.size(); ++row) {
    points.push_back({{"value", result.grid[row].text}, {"means", result.means[row]}});
  }
  return indented(Json{{"model", result.model},
                       {"set", result.set},
                       {"samples", result.samples},
                       {"column", result.column},
                       {"outputs", result.outputs},
                       {"points", points}});
}

}  // namespace lockstep
