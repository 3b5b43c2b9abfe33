#include "stack_of_thread.h"

#if __has_include(<execinfo.h>)
#include <cxxabi.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "lockstep/base/thread_team.h"

namespace lockstep {
namespace {

constexpr int kMaxFrames = 48;
constexpr int kOwnFrames = 2;   // the handler and the return from the signal
constexpr int kMaxLooks = 100;  // looks for answers, over all threads together
constexpr std::chrono::milliseconds kLookEvery{10};

std::array<void*, kMaxFrames> frames;
std::atomic<int> frame_count = -1;  // -1: nobody has answered
std::atomic<bool> wanted = false;
std::mutex one_at_a_time;

// SIGUSR1 and SIGUSR2 belong to the launcher, and timers to profilers.
int stack_signal() {
  return SIGRTMIN + 6;
}

extern "C" void write_stack_down(int) {
  const int before = errno;
  if (wanted.exchange(false)) frame_count = ::backtrace(frames.data(), kMaxFrames);
  errno = before;
}

std::string demangled(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : mangled;
}

// "path(mangled+0x1f) [0x7f..]" becomes "name (file)".
std::string readable(std::string_view symbol) {
  constexpr std::size_t kLongest = 120;
  const std::size_t open = symbol.find('(');
  const std::size_t plus = symbol.find_first_of("+)", open);
  if (open == std::string_view::npos || plus == std::string_view::npos) return std::string(symbol);
  const std::string_view path = symbol.substr(0, open);
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const std::string name(symbol.substr(open + 1, plus - open - 1));
  if (name.empty()) {
    return fmt::format("{} {}", file, symbol.substr(plus, symbol.find(')', plus) - plus));
  }
  return fmt::format("{} ({})", demangled(name).substr(0, kLongest), file);
}

// `looks`: how often one may still look for an answer.
std::string stack_of(pthread_t thread, int& looks) {
  frame_count = -1;
  wanted = true;
  if (::pthread_kill(thread, stack_signal()) != 0) return "";
  for (; looks > 0 && frame_count < 0; --looks) std::this_thread::sleep_for(kLookEvery);
  wanted = false;
  const int count = frame_count;
  if (count <= kOwnFrames) return "";
  const std::unique_ptr<char*, decltype(&std::free)> symbols(::backtrace_symbols(frames.data(), count),
                                                             &std::free);
  if (symbols == nullptr) return "";
  std::string text;
  for (int i = kOwnFrames; i < count; ++i) text += readable(symbols.get()[i]) + "\n";
  return text;
}

}  // namespace

void prepare_stacks() {
  ::backtrace(frames.data(), kMaxFrames);  // loads the unwinder
  struct sigaction action {};
  action.sa_handler = write_stack_down;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(stack_signal(), &action, nullptr);
}

std::string stacks_of(pthread_t thread) {
  const std::lock_guard lock(one_at_a_time);
  int looks = kMaxLooks;
  std::string text = stack_of(thread, looks);
  for_each_named_thread([&](const std::string& name, pthread_t other) {
    if (looks == 0) return;
    const std::string stack = stack_of(other, looks);
    text += fmt::format("thread '{}'{}\n{}", name, stack.empty() ? " does not answer" : ":", stack);
  });
  return text;
}

}  // namespace lockstep
#else
namespace lockstep {
void prepare_stacks() {}
std::string stacks_of(pthread_t) {
  return "";
}
}  // namespace lockstep
#endif
