// How all ranks come to the same config.
#pragma once

#include "experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/progress_thread.h"

namespace lockstep {

/// *Collective.* Rank 0 reads the config file; every rank gets its text. Errors: AgreedError.
ConfigText read_config_together(Communicator& comm, const CommandLine& line);
/// *Collective.* The config of this text. Errors: AgreedError.
LoadedConfig load_config_together(Communicator& comm, const CommandLine& line, const ConfigText& text,
                                  const Placement& placement);
/// *Collective.* Both. Errors: AgreedError.
LoadedConfig load_config_together(Communicator& comm, const CommandLine& line, const Placement& placement);

/// *Local, before there are ranks.* Whether the config, as far as this host can read it, wants several
/// threads that talk to other ranks. Errors in it are reported later, by all ranks together.
bool wants_multiple_threads(const CommandLine& line);

/// *Collective.* A helper thread if the config wants one. Errors: AgreedError if MPI does not provide for it
/// on all ranks.
std::unique_ptr<ProgressThread> make_progress_thread(Communicator& comm, const DistOptions& options);

}  // namespace lockstep
