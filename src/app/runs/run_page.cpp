#include "run_page.h"

#include "lockstep/base/build_info.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/report/page/report_page.h"
#include "run_description.h"

namespace lockstep {

void write_evaluation_file(const RunDirectory& run, const EvaluationDetails& details) {
  try {
    write_file_atomically(run.evaluation(), to_json(details));
  } catch (const std::exception& error) {
    log_warning("evaluation.json is not written: {}", error.what());
  }
}

void write_run_page(const RunDirectory& run) {
  constexpr Index kMaxMetricsBytes = Index{16} << 20;  // read in a third of a second
  if (!has_feature("CHARTJS")) return;
  try {
    if (file_bytes(run.metrics()) > kMaxMetricsBytes) {
      log_info("report.html is left out, as metrics.jsonl is long: trainer report {} --output report.html",
               run.root.string());
      return;
    }
    write_file_atomically(run.report(), report_page({describe_run(run.root)}));
  } catch (const std::exception& error) {
    log_warning("report.html is not written: {}", error.what());
  }
}

}  // namespace lockstep
