// Stacks of other threads of this process: each is interrupted by a real-time signal and writes its own stack
// down. Only with glibc; elsewhere there is none to be had.
#pragma once

#include <pthread.h>

#include <string>

namespace lockstep {

/// Before the first stack_of(): what may not be done for the first time in a signal handler. Threads that
/// compute have a SignalStack.
void prepare_stacks();

/// *Blocking*, for at most a second. One function a line, from the innermost on; "" if the thread does not
/// answer. Behind it, the same of all threads that have a name (NamedThread): what `thread` waits for may be
/// one of them.
std::string stacks_of(pthread_t thread);

}  // namespace lockstep
