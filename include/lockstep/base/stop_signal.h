// The wish of a signal that the process should come to an orderly end. No handler takes it: that would run in
// the middle of a product, and oneDNN's kernels keep data below the stack pointer, where a handler puts its
// own. The signals are blocked in all threads, so the kernel keeps them until somebody asks; who works for
// long asks now and then.
#pragma once

#include <string>

namespace lockstep {

/// From now on SIGTERM, SIGINT and SIGUSR1 do not end the process, but are kept until stop_signal() is asked.
/// To be called before other threads are made, MPI's too: only then are the signals blocked in these as well.
void note_stop_signals();

/// The name of the first such signal that was found since then (of several at once, the lowest number); "" if
/// there was none. Any thread may ask.
std::string stop_signal();

/// Errors: Error with exit code kExitStopped if there was such a signal. For work that is lost without harm.
void throw_if_stopped();

}  // namespace lockstep
