// Ranks of a trainer under mpiexec that wait for commands: most of the time of a short run is its start.
#pragma once

#include "support/trainer_process.h"

namespace lockstep::test {

/// trainer ARGUMENTS on the ranks of this number that the test program has started once. Ranks that end with
/// an error on which they do not agree, and so abort their job, are started anew for the next command.
/// Nothing if the arguments need a shell for more than quotes and patterns.
std::optional<ProcessResult> run_on_waiting_ranks(int ranks, const std::string& arguments);

}  // namespace lockstep::test
