// trainer status: a line for each run, from the directories alone.
#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "lockstep/config/command_line.h"
#include "lockstep/report/status_lines.h"
#include "outputs.h"
#include "run_description.h"
#include "run_record.h"

namespace lockstep {

int status_command(const CommandLine& line) {
  std::vector<RunDescription> runs;
  for (const std::filesystem::path& directory : find_runs(line.runs)) runs.push_back(describe_run(directory));
  print_report(line, status_lines(runs));
  return 0;
}

}  // namespace lockstep
