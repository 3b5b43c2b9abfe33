#include "lockstep/report/tables/importance_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/train/evaluation/early_stopping.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string write(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// "falls" or "rises": what a measure does that gets worse.
const char* worse(const std::string& measure) {
  return smaller_is_better(measure) ? "rises" : "falls";
}

}  // namespace

std::string to_text(const ImportanceResult& result) {
  const Importance& found = result.importance;
  std::vector<std::vector<std::string>> rows{{"column", "importance", "deviation"}};
  for (const ColumnImportance& column : found.columns) {
    rows.push_back({excerpt(column.name), fmt::format("{:.6f}", column.mean()),
                    fmt::format("{:.6f}", column.deviation())});
  }
  return fmt::format(
      "{}: {} samples, {} {:.6f}\nimportance of a column: by how much the {} {} when its values are shuffled "
      "(mean of {} repeats)\n{}",
      result.set, with_commas(found.samples), result.measure, found.baseline, result.measure,
      worse(result.measure), found.columns.front().losses.size(), text_table(rows, 1));
}

std::string to_csv(const ImportanceResult& result) {
  const std::vector<ColumnImportance>& columns = result.importance.columns;
  std::string text = "column,importance,deviation";
  for (std::size_t i = 1; i <= columns.front().losses.size(); ++i) text += fmt::format(",repeat_{}", i);
  text += '\n';
  for (const ColumnImportance& column : columns) {
    text += fmt::format("{},{},{}", csv_cell(column.name), column.mean(), column.deviation());
    for (const double loss : column.losses) text += fmt::format(",{}", loss);
    text += '\n';
  }
  return text;
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
  return write({{"model", result.model},
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
  std::vector<std::vector<std::string>> rows{{excerpt(result.column)}};
  for (std::size_t i = 0; i < shown; ++i) rows.front().push_back(excerpt(result.outputs[i]));
  for (std::size_t row = 0; row < result.grid.size(); ++row) {
    rows.push_back({excerpt(result.grid[row].text)});
    for (std::size_t i = 0; i < shown; ++i)
      rows.back().push_back(fmt::format("{:.6g}", result.means[row][i]));
  }
  return fmt::format(
      "{}: {} samples; mean prediction, if all of them had one value of {}\n{}{}", result.set,
      with_commas(result.samples), in_quotes(result.column), text_table(rows, 1),
      shown < result.outputs.size()
          ? fmt::format("{} more outputs: --csv and --json have them\n", result.outputs.size() - shown)
          : "");
}

std::string to_csv(const DependenceResult& result) {
  std::string text = csv_cell(result.column);
  for (const std::string& output : result.outputs) text += fmt::format(",{}", csv_cell(output));
  text += '\n';
  for (std::size_t row = 0; row < result.grid.size(); ++row) {
    text += csv_cell(result.grid[row].text);
    for (const double mean : result.means[row]) text += fmt::format(",{}", mean);
    text += '\n';
  }
  return text;
}

std::string to_json(const DependenceResult& result) {
  Json points = Json::array();
  for (std::size_t row = 0; row < result.grid.size(); ++row) {
    points.push_back({{"value", result.grid[row].text}, {"means", result.means[row]}});
  }
  return write({{"model", result.model},
                {"set", result.set},
                {"samples", result.samples},
                {"column", result.column},
                {"outputs", result.outputs},
                {"points", points}});
}

}  // namespace lockstep
