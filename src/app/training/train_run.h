// A training run as a function: what `trainer --config` does, on any communicator.
#pragma once

#include <filesystem>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"

namespace lockstep {

/// The wishes of a sweep for one of its runs; they change nothing that the run learns.
struct RunRequest {
  std::vector<std::filesystem::path> stop_files = {};  ///< beside the run's own
  double seconds_gone = 0;  ///< seconds of run.time_limit that are over when the run begins
  /// The run pauses after the first evaluation at or after this share of its steps; 1: it goes to its end.
  double pause_share = 1;
};

struct RunOutcome {
  int exit_code = 0;    ///< 0, or kExitStopped
  bool paused = false;  ///< it stopped at pause_share
};

/// *Collective over `comm`.* Trains in run.dir, or goes on there. Errors: AgreedError.
RunOutcome train_run(Communicator& comm, const CommandLine& line, const ConfigText& text,
                     const RunRequest& request = {});

}  // namespace lockstep
