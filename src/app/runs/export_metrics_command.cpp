// trainer export-metrics: metrics.jsonl of runs as CSV.
#include <fmt/format.h>

#include <algorithm>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/quoted.h"
#include "lockstep/config/commands.h"
#include "lockstep/report/metrics_csv.h"
#include "lockstep/train/storage/run_directory.h"
#include "run_record.h"

namespace lockstep {

int export_metrics_command(const CommandLine& line) {
  const std::vector<std::string> formats = metrics_formats();
  if (!line.format.empty() && std::ranges::find(formats, line.format) == formats.end()) {
    throw ConfigError(fmt::format("unknown format {} of export-metrics (known: {})", in_quotes(line.format),
                                  listed(formats)));
  }
  std::vector<std::filesystem::path> files;
  std::vector<std::string> names;
  std::vector<std::string> inputs;
  for (const std::filesystem::path& directory : find_runs(line.runs)) {
    names.push_back(directory.lexically_normal().string());
    files.push_back(RunDirectory{directory}.metrics());
    inputs.push_back(files.back().string());
  }
  check_outputs(line, inputs);
  OutputFile file(line.output);
  const auto faults = write_metrics_csv(files, names, [&](std::string_view text) { file.write(text); });
  file.commit();
  for (const std::string& fault : faults) log_warning("{}; the other lines were exported", fault);
  log_info("exported the metrics of {} run{} to {}", files.size(), files.size() == 1 ? "" : "s",
           describe_output(line.output));
  return 0;
}

}  // namespace lockstep
