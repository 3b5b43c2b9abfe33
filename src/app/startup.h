// How all ranks come to the same config.
#pragma once

#include "experiment.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

/// *Collective.* Rank 0 reads the config file; every rank gets its text. Errors: AgreedError.
LoadedConfig load_config_together(Communicator& comm, const CommandLine& line);

}  // namespace lockstep
