// trainer status: a line for each run, from the directories alone.
#include "app/commands.h"
#include "app/setup/outputs.h"
#include "lockstep/config/command_line.h"
#include "lockstep/report/status_lines.h"
#include "run_description.h"

namespace lockstep {

int status_command(const CommandLine& line) {
  print_report(line, status_lines(describe_runs(line.runs)));
  return 0;
}

}  // namespace lockstep
