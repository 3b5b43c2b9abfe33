// Which run owns a directory of checkpoints outside the run directory (checkpoint.dir). Two runs there would
// resume from each other's checkpoints and remove them, so one run at a time owns it. A run has an id, a
// random text in its directory, and keeps it when that is moved or seen from another host; the directory of
// checkpoints names its owner in the file `owner`.
#pragma once

#include <filesystem>

#include "lockstep/train/storage/checkpoint/directory.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// Errors: ConfigError, naming the other run, if the directory has the checkpoints of another run than the
/// one in `run`, or if it is that of another run's own checkpoints; DataError. Changes nothing. A run
/// directory without a config counts as a new run, and no checkpoint is that of a new run. Checkpoints
/// without a known owner, of older builds, are accepted as those of a run that is not new. The run's own
/// RUN/checkpoints is always accepted.
void refuse_foreign_checkpoints(const CheckpointDirectory& checkpoints, const RunDirectory& run);

/// Makes the run the owner: creates the directory, locks it while the result lives, and writes `owner`
/// and, if the run has none, its id. Nothing is done, and no lock held, for the run's own RUN/checkpoints.
/// Errors: as above; ConfigError if another process holds the directory.
RunLock claim_checkpoints(const CheckpointDirectory& checkpoints, const RunDirectory& run);

}  // namespace lockstep
