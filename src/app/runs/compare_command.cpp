// trainer compare: what differs between runs, and what came of it, from their directories alone.
#include "app/commands.h"
#include "app/setup/outputs.h"
#include "lockstep/base/output_file.h"
#include "run_table.h"

namespace lockstep {

int compare_command(const CommandLine& line) {
  check_outputs(line, {});
  std::vector<RunRecord> runs;
  for (const std::filesystem::path& directory : find_runs(line.runs)) runs.push_back(read_run(directory));
  sort_runs(runs, line.sort.empty() ? "best" : line.sort);
  print_report(line, to_text(runs));
  if (!line.csv.empty()) write_output(line.csv, to_csv(runs));
  if (!line.json.empty()) write_output(line.json, to_json(runs));
  return 0;
}

}  // namespace lockstep
