// How all ranks come to the same config.
#pragma once

#include <span>
#include <string>

#include "experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/progress_thread.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/config.h"
#include "lockstep/data/record_source.h"

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

// Checks before a run, against the ways in which a launch can go wrong without anybody noticing.

/// Refuses when a launcher started several tasks but MPI knows of one: each would train alone.
/// Errors: ConfigError with the fix.
void refuse_singletons(const Communicator& comm);

/// *Collective.* Refuses when a rank was given another command. Errors: AgreedError naming the ranks.
void refuse_different_commands(Communicator& comm, const CommandLine& line);

/// *Collective.* Refuses when a rank has another config or another program. Before data is opened, which is
/// the work of all ranks together. Errors: AgreedError naming the ranks.
void refuse_differences(Communicator& comm, const Config& config);

/// *Collective.* Refuses when a rank has data of another size. Errors: AgreedError naming the ranks.
void refuse_different_data(Communicator& comm, std::span<const RecordSource* const> sources);

/// *Collective.* Warns, with the corrected command line, if a rank has more threads than cores to run on.
void warn_of_few_cores(Communicator& comm, Index threads);

}  // namespace lockstep
