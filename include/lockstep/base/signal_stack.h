// A stack of their own for signal handlers. oneDNN's kernels keep data below the stack pointer, which is
// where a handler would otherwise put its own: it destroyed the operands of a product, and the heap behind
// them.
#pragma once

#include <csignal>
#include <cstddef>

namespace lockstep {

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
