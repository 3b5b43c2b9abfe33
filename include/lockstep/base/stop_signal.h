// The wish of a signal that the process should come to an orderly end. A handler can do no more than note it;
// who works for long looks here now and then.
#pragma once

#include <string>

namespace lockstep {

/// From now on SIGTERM, SIGINT and SIGUSR1 are noted instead of ending the process.
void note_stop_signals();

/// The name of the first such signal since then; "" if there was none. Any thread may ask.
std::string stop_signal();

/// Errors: Error with exit code kExitStopped if there was such a signal. For work that is lost without harm.
void throw_if_stopped();

}  // namespace lockstep
