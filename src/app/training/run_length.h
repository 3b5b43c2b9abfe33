// The length of a resumed run: whether anything is left of it, and what another length does to the learning
// rate.
#pragma once

#include "app/setup/experiment.h"
#include "resume_state.h"

namespace lockstep {

/// Whether the run that was there went as far as this config asks.
bool is_over(const Config& config, const RunPlan& plan, const ResumeState& resume);

/// Errors: ConfigError if the run that was there has made more steps than the plan has, or if it is complete,
/// is to be longer now, and has no checkpoint to resume from. Requires that it is not over.
void refuse_length(const Config& config, const RunPlan& plan, const ResumeState& resume);

/// Rank 0: logs that no step is left, and warns if the learning rate of the next step is not that which the
/// checkpoint's config would give.
void log_rest(const Experiment& experiment, const RunPlan& plan, const ResumeState& resume);

}  // namespace lockstep
