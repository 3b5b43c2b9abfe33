// The timeline of a run: begun before the first step, merged into one file after the last.
#pragma once

#include <memory>

#include "experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/loop/step_tracer.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// *Collective.* Null without report.trace. Removes what an earlier start has recorded. `steps_done`: before
/// this start. Errors: AgreedError.
std::unique_ptr<StepTracer> start_trace(Communicator& comm, const Experiment& experiment, const RunPlan& plan,
                                        Index steps_done);

/// *Collective.* Rank 0 writes trace.json.gz; what goes wrong is a warning.
void finish_trace(Communicator& comm, std::unique_ptr<StepTracer> tracer, const RunDirectory& directory);

}  // namespace lockstep
