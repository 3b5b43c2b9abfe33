// Runs a test's body on several ranks: as threads for each count in turn or, when the program runs under
// mpiexec (with --mpi), on the ranks that there are.
#pragma once

#include "lockstep/comm/communicator.h"
#include "support/common.h"

namespace lockstep::test {

/// Most ranks that are run as threads.
inline constexpr int kMaxThreadRanks = 8;

/// Whether the program runs under mpiexec.
bool under_mpi();

void on_ranks(const std::function<void(Communicator&)>& body);

/// As threads for these counts only.
void on_ranks(const std::vector<int>& counts, const std::function<void(Communicator&)>& body);

/// The counts of one of many cases, by its turn: a small one and two larger ones. Any four turns in a row
/// have each count from 1 to kMaxThreadRanks. Under mpiexec all cases run on its ranks.
std::vector<int> counts_of_turn(Index turn);

}  // namespace lockstep::test
