#include "run_views.h"

#include "lockstep/base/build_info.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/report/page/report_page.h"
#include "read_run.h"

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
    write_file_atomically(run.report(), report_page({read_page_run(read_run(run.root), run)}));
  } catch (const std::exception& error) {
    log_warning("report.html is not written: {}", error.what());
  }
}

std::unique_ptr<StepTracer> start_trace(Communicator& comm, const Experiment& experiment, const RunPlan& plan,
                                        Index steps_done) {
  const TraceRequest request = parse_trace("report.trace", experiment.config.report.trace);
  if (!request.any()) return nullptr;
  const RunDirectory directory{experiment.config.run.dir};
  agree_on_first(comm, [&] {
    std::error_code ignored;
    std::filesystem::remove(directory.trace(), ignored);
    std::filesystem::remove_all(directory.traces(), ignored);
    std::filesystem::create_directories(directory.traces(), ignored);  // the file shows what is wrong
  });
  std::unique_ptr<StepTracer> tracer;
  TraceHead head{.rank = comm.rank(),
                 .ranks = comm.size(),
                 .stage = plan.grid().stage_of(comm.rank()),
                 .host = host_name(),
                 .steps = {steps_done, plan.steps},
                 .request = request};
  for (const ModelOp& op : experiment.model->ops()) head.ops.push_back(op.title);
  agree(comm, [&] {
    tracer = std::make_unique<StepTracer>(trace_file(directory.traces(), comm.rank()), std::move(head));
  });
  return tracer;
}

RunTrace read_run_trace(const RunDirectory& directory) {
  RunTrace trace = read_trace(directory.traces());
  for (const std::string& fault : trace.faults) log_warning("{}", fault);
  return trace;
}

WrittenTrace write_trace(const RunDirectory& directory, const std::string& output) {
  RunTrace trace = read_run_trace(directory);
  const TraceFile file = trace_json_gz(trace);
  write_output(output, file.bytes);
  if (file.left_out > 0) {
    log_warning(
        "the timeline, which has at most 20 MB, lacks the last {}: fewer steps in report.trace, or fewer "
        "ranks, have room",
        plural(static_cast<Index>(file.left_out), "step"));
  }
  return {.trace = std::move(trace), .bytes = file.bytes.size()};
}

void finish_trace(Communicator& comm, std::unique_ptr<StepTracer> tracer, const RunDirectory& directory) {
  if (tracer == nullptr) return;
  tracer.reset();
  comm.barrier();  // now all ranks have written theirs
  if (comm.rank() != 0) return;
  try {
    const RunTrace trace = write_trace(directory, directory.trace().string()).trace;
    log_info("timeline: {}; open it in ui.perfetto.dev, or see 'trainer trace {}'", describe_trace(trace),
             directory.root.string());
  } catch (const Error& error) {
    log_warning("no timeline: {}", error.what());
  }
}

}  // namespace lockstep
