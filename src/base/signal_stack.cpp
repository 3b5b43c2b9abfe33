#include "lockstep/base/signal_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace lockstep {
namespace {

// SIGSTKSZ asks the system: the registers that it saves take 11 KB on CPUs with AMX. The rest is for the
// unwinder.
std::size_t stack_bytes() {
  constexpr std::size_t kHandler = 64 * 1024;
  return static_cast<std::size_t>(SIGSTKSZ) + kHandler;
}

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

SignalStack::SignalStack()
    : bytes_(stack_bytes() + page_bytes()),
      memory_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  // A handler that needs more hits this page instead of memory of others.
  ::mprotect(memory_, page_bytes(), PROT_NONE);
  stack_t stack{};
  stack.ss_sp = static_cast<std::byte*>(memory_) + page_bytes();
  stack.ss_size = bytes_ - page_bytes();
  ::sigaltstack(&stack, &before_);
}

// The stack from before comes back: AddressSanitizer gives each thread one, and releases what is there at its
// end.
SignalStack::~SignalStack() {
  ::sigaltstack(&before_, nullptr);
  ::munmap(memory_, bytes_);
}

}  // namespace lockstep
