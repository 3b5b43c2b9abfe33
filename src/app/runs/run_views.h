// Files that a run leaves to be looked at: evaluation.json, report.html and its timeline.
#pragma once

#include <memory>
#include <string>

#include "app/setup/experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/report/trace/trace.h"
#include "lockstep/train/evaluation/evaluation_details.h"
#include "lockstep/train/loop/step_tracer.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// evaluation.json, which the page is made from. Fails as write_run_page() does.
void write_evaluation_file(const RunDirectory& run, const EvaluationDetails& details);

/// Rank 0, after run.json is. A page that cannot be made is a warning: trainer report makes it
/// later. One of very many lines of metrics is left to that, too, as is one without its library.
void write_run_page(const RunDirectory& run);

// The timeline of a run: begun before the first step, merged into one file after the last.

/// *Collective.* Null without report.trace. Removes what an earlier start has recorded. `steps_done`: before
/// this start. Errors: AgreedError.
std::unique_ptr<StepTracer> start_trace(Communicator& comm, const Experiment& experiment, const RunPlan& plan,
                                        Index steps_done);

/// Reads the timeline of a run, and warns of what is missing or damaged. Errors: DataError.
RunTrace read_run_trace(const RunDirectory& directory);

struct WrittenTrace {
  RunTrace trace = {};
  std::size_t bytes = 0;  ///< of the file
};

/// Reads the timeline of a run and writes it to `output` as one file; warns of what is missing, damaged or
/// left out. Errors: DataError.
WrittenTrace write_trace(const RunDirectory& directory, const std::string& output);

/// *Collective.* Rank 0 writes trace.json.gz; what goes wrong is a warning.
void finish_trace(Communicator& comm, std::unique_ptr<StepTracer> tracer, const RunDirectory& directory);

}  // namespace lockstep
