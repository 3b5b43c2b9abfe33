// trainer report: a page that shows what runs did, from their directories alone.

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "lockstep/base/build_info.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "run_description.h"

namespace lockstep {

int report_command(const CommandLine& line) {
  require_feature("CHARTJS", "trainer report");
  check_outputs(line, {});
  const std::vector<RunDescription> runs = describe_runs(line.runs);
  const std::string page = report_page(runs);
  write_output(line.output, page);
  log_info("report of {} run{}: {} ({})", runs.size(), runs.size() == 1 ? "" : "s",
           describe_output(line.output), human_bytes(page.size()));
  return 0;
}

}  // namespace lockstep
