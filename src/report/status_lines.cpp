#include "lockstep/report/status_lines.h"

#include <fmt/format.h>

#include "lockstep/base/text.h"
#include "report/history/run_numbers.h"

namespace lockstep {
namespace {

using StatusRow = std::vector<std::string>;

StatusRow row_of(const RunDescription& run) {
  const ShownMeasure values = shown_measure(run);
  return {excerpt(run.name),
          run.state,
          progress_of(run),
          excerpt(values.name(), 30),
          short_number(values.last()),
          short_number(values.best),
          run.seconds > 0 ? count_text(run.samples / run.seconds) : "-",
          time_left(run)};
}

}  // namespace

std::string status_lines(const std::vector<RunDescription>& runs) {
  std::vector<StatusRow> rows{{"run", "state", "steps", "measure", "last", "best", "samples/s", "time left"}};
  for (const RunDescription& run : runs) rows.push_back(row_of(run));
  return text_table(rows);
}

}  // namespace lockstep
