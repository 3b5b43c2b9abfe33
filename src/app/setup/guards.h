// Checks before a run, against the ways in which a launch can go wrong without anybody noticing.
#pragma once

#include <string>

#include <span>

#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/config.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

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
