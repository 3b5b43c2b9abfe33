// Ranks as threads of one process: the same interface without a launcher, for tests of everything above
// `comm`.
#pragma once

#include "lockstep/comm/communicator.h"
#include "support/common.h"

namespace lockstep {

/// Runs `body` once per rank, each on its own thread, and waits for all. If ranks throw, the ranks that wait
/// for them are released (with a CommError of their own) and the first rank's exception, in order of cause,
/// is thrown again. abort() behaves as such an exception: a CommError that names the exit code.
void run_thread_ranks(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace lockstep
