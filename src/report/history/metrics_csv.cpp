#include "lockstep/report/history/metrics_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/report/history/metrics_history.h"

namespace lockstep {
namespace {

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string csv_line(const MetricsLine& line, const std::string& run,
                     const std::vector<std::string>& columns) {
  std::string text = fmt::format("{},{},{},{},{},{}", run, csv_cell(line.kind), csv_cell(line.split),
                                 csv_number(line.step), csv_number(line.epoch), csv_number(line.samples));
  for (const std::string& column : columns) {
    const auto found = std::ranges::find(line.values, column, &std::pair<std::string, double>::first);
    text += ',';
    if (found != line.values.end()) text += csv_number(found->second);
  }
  return text + '\n';
}

}  // namespace

std::vector<std::string> write_metrics_csv(const std::vector<std::filesystem::path>& metrics,
                                           const std::vector<std::string>& names,
                                           const std::function<void(std::string_view)>& write) {
  std::vector<std::string> faults;
  std::vector<std::string> columns;
  for (const std::filesystem::path& file : metrics) {
    const auto found = read_metrics_lines(file, [&](const MetricsLine& line) {
      for (const auto& [name, value] : line.values) {
        if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
      }
    });
    for (const std::string& fault : found) faults.push_back(fmt::format("'{}': {}", file.string(), fault));
  }
  std::string head = "run,kind,split,step,epoch,samples_seen";
  for (const std::string& column : columns) head += ',' + csv_cell(column);
  write(head + '\n');
  for (std::size_t run = 0; run < metrics.size(); ++run) {
    const std::string name = csv_cell(names[run]);
    read_metrics_lines(metrics[run], [&](const MetricsLine& line) { write(csv_line(line, name, columns)); });
  }
  return faults;
}

}  // namespace lockstep
