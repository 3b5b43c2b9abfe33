// Handlers run on a stack of their own in every thread that computes or can be asked for its stack.
#include "lockstep/base/stop_signal.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>
#include <vector>

#include "lockstep/base/thread_team.h"

namespace lockstep {
namespace {

std::atomic<const void*> handler_ran_at = nullptr;

extern "C" void note_where(int) {
  const int local = 0;
  handler_ran_at = &local;
}

stack_t alternate_stack() {
  stack_t stack{};
  ::sigaltstack(nullptr, &stack);
  return stack;
}

// Whether a signal to the calling thread is handled within its alternate stack.
bool handles_on_alternate_stack() {
  struct sigaction action {};
  action.sa_handler = note_where;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGUSR2, &action, nullptr);
  handler_ran_at = nullptr;
  ::pthread_kill(::pthread_self(), SIGUSR2);
  const stack_t stack = alternate_stack();
  const auto* begin = static_cast<const std::byte*>(stack.ss_sp);
  const auto* ran = static_cast<const std::byte*>(handler_ran_at.load());
  return (stack.ss_flags & SS_DISABLE) == 0 && ran >= begin && ran < begin + stack.ss_size;
}

TEST(SignalStack, IsWhereHandlersRunWhileItLives) {
  const stack_t before = alternate_stack();
  {
    const SignalStack stack;
    EXPECT_GE(alternate_stack().ss_size, static_cast<std::size_t>(SIGSTKSZ) + 64 * 1024);
    EXPECT_TRUE(handles_on_alternate_stack());
  }
  EXPECT_EQ(alternate_stack().ss_sp, before.ss_sp);
  EXPECT_EQ(alternate_stack().ss_flags, before.ss_flags);
}

TEST(SignalStack, IsThereInNamedThreads) {
  std::jthread([] {
    const NamedThread name("test");
    EXPECT_TRUE(handles_on_alternate_stack());
  }).join();
}

TEST(SignalStack, IsThereInTheOtherThreadsOfATeam) {
  ThreadTeam team(3);
  std::vector<stack_t> stacks(3);
  team.run([&](int thread) { at(stacks, thread) = alternate_stack(); });
  for (const std::size_t thread : {1U, 2U}) {
    EXPECT_EQ(stacks[thread].ss_flags & SS_DISABLE, 0);
    EXPECT_GE(stacks[thread].ss_size, static_cast<std::size_t>(SIGSTKSZ) + 64 * 1024);
  }
  EXPECT_NE(stacks[1].ss_sp, stacks[2].ss_sp);
}

}  // namespace
}  // namespace lockstep
