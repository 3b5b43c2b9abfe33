// trainer trace: a summary of the timeline of a run, or the file for a viewer, also of a run that was killed.
#include <fmt/format.h>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/print.h"
#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "lockstep/report/trace.h"
#include "lockstep/train/storage/run_directory.h"
#include "run_trace.h"

namespace lockstep {

int trace_command(const CommandLine& line) {
  if (line.runs.size() > 1) {
    throw ConfigError(fmt::format("trainer trace takes one run, and found {}: {} and {}", line.runs.size(),
                                  in_quotes(line.runs[0]), in_quotes(line.runs[1])));
  }
  expect_run_exists(line.runs.front());
  const RunDirectory directory{line.runs.front()};
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory.traces(), ignored)) {
    throw ConfigError(
        fmt::format("{} has no timeline: it is recorded with --report.trace \"first 20, slowest 20 steps\"",
                    in_quotes(line.runs.front())));
  }
  if (!line.output.empty()) check_outputs(line, {});
  if (line.output.empty()) {
    print_out("{}", summarise_trace(read_run_trace(directory)));
    return 0;
  }
  const WrittenTrace written = write_trace(directory, line.output);
  log_info("timeline: {}: {} ({})", describe_trace(written.trace), describe_output(line.output),
           human_bytes(written.bytes));
  return 0;
}

}  // namespace lockstep
