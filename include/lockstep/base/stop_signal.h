// The wish of a signal that the process should come to an orderly end. No handler takes it: that would run in
// the middle of a product, whose kernels keep data where a handler puts its own (see SignalStack). The
// signals are blocked in all threads, so the kernel keeps them until somebody asks; who works for long asks
// now and then.
#pragma once

#include <csignal>
#include <cstddef>
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

// A stack of their own for signal handlers. oneDNN's kernels keep data below the stack pointer, which is
// where a handler would otherwise put its own: it destroyed the operands of a product, and the heap behind
// them.

/// For as long as the object lives, which it does on one thread, handlers that were installed with SA_ONSTACK
/// run on a stack of their own there, large enough for backtrace(). Each thread that computes needs one: the
/// kernel may choose any thread for a signal. Errors: std::bad_alloc.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::size_t bytes_;  // size of the memory, guard page included
  void* memory_;
  stack_t before_{};
};

}  // namespace lockstep
