// run.resume = "restart": what is in run.dir is moved away, and the run begins again.
#pragma once

#include "resume_state.h"

namespace lockstep {

/// Rank 0: the right to move run.dir away. Errors: ConfigError if it is not the directory of a run, if
/// another trainer works in it, or if its checkpoints are elsewhere and would be mixed with new ones.
RunLock claim_restart(const Config& config, const RunDirectory& directory);

/// Rank 0: after a start that failed before anything was learned; a directory left behind would only be in
/// the way of the next attempt. A new one is removed, of one that was there its content, and what was moved
/// away comes back. Without the lock nothing is removed: it is another's.
void undo_preparation(const ResumeState& resume);

}  // namespace lockstep
