#include "lockstep/base/process.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxShownBytes = 500;
constexpr Index kMaxNumber = 1'000'000'000;

std::atomic<bool> blocked = false;
std::atomic<int> noted = 0;

constexpr std::array kStopSignals{SIGTERM, SIGINT, SIGUSR1};

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kStopSignals) sigaddset(&signals, signal);
  return signals;
}

constexpr Index kNoLimit = std::numeric_limits<Index>::max();

// kNoLimit where the file has no number: "max", or there is no such file.
Index number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  Index number = 0;
  return in >> number ? number : kNoLimit;
}

Index machine_bytes() {
  struct sysinfo found {};
  if (sysinfo(&found) != 0) return kNoLimit;
  return static_cast<Index>(found.totalram + found.totalswap) * static_cast<Index>(found.mem_unit);
}

// A group is limited by those above it too.
Index smallest_upwards(const std::filesystem::path& root, std::filesystem::path group, const char* file) {
  Index smallest = kNoLimit;
  for (group = group.relative_path(); !group.empty(); group = group.parent_path()) {
    smallest = std::min(smallest, number_in(root / group / file));
  }
  return std::min(smallest, number_in(root / file));
}

// Version 2 has one hierarchy, "0::/path"; version 1 has one for memory, "4:memory:/path".
Index control_group_bytes() {
  Index smallest = kNoLimit;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t controllers = std::min(line.find(':'), line.size() - 1) + 1;
    const std::size_t path = line.find(':', controllers);
    if (path == std::string::npos) continue;
    const std::string names = fmt::format(",{},", line.substr(controllers, path - controllers));
    const std::filesystem::path group = line.substr(path + 1);
    if (names == ",,") smallest = std::min(smallest, smallest_upwards("/sys/fs/cgroup", group, "memory.max"));
    if (names.find(",memory,") != std::string::npos) {
      smallest =
          std::min(smallest, smallest_upwards("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return smallest;
}

// The part of the address space limit that the process does not use yet.
Index address_space_bytes() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const Index pages = number_in("/proc/self/statm");
  const Index used = pages == kNoLimit ? 0 : pages * sysconf(_SC_PAGESIZE);
  return std::max<Index>(0, static_cast<Index>(limit.rlim_cur) - used);
}

}  // namespace

std::optional<std::string> environment_text(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view whole = value;
  std::string text(whole.substr(0, kMaxShownBytes));
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  if (whole.size() > kMaxShownBytes) text += "...";
  return text;
}

std::optional<Index> environment_number(const char* name) {
  const std::optional<std::string> text = environment_text(name);
  if (!text) return std::nullopt;
  const std::optional<Index> number = number_in<Index>(*text);
  return number && *number >= 0 && *number <= kMaxNumber ? number : std::nullopt;
}

std::optional<Index> launched_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const std::optional<Index> rank = environment_number(variable)) return rank;
  }
  return std::nullopt;
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Shells start what they put in the background with SIGINT ignored, and an ignored signal may be lost even if
// it is blocked.
StopSignals::StopSignals() {
  const sigset_t signals = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    ::sigaction(kStopSignals[i], &usual, &actions_before_[i]);
  }
  blocked = true;
}

StopSignals::~StopSignals() {
  blocked = false;
  noted = 0;
  const sigset_t signals = stop_signals();
  const timespec at_once{};
  while (::sigtimedwait(&signals, nullptr, &at_once) > 0) {
  }
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    ::sigaction(kStopSignals[i], &actions_before_[i], nullptr);
  }
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::string stop_signal() {
  if (blocked && noted == 0) {
    const sigset_t signals = stop_signals();
    const timespec at_once{};
    int none = 0;
    if (const int signal = ::sigtimedwait(&signals, nullptr, &at_once); signal > 0) {
      noted.compare_exchange_strong(none, signal);
    }
  }
  const int signal = noted;
  return signal == 0 ? "" : signal == SIGTERM ? "SIGTERM" : signal == SIGINT ? "SIGINT" : "SIGUSR1";
}

void throw_if_stopped() {
  const std::string signal = stop_signal();
  if (signal.empty()) return;
  throw Error(fmt::format("stopped by {} before the first step: nothing was learned yet", signal),
              kExitStopped);
}

MemoryLimit memory_limit() {
  MemoryLimit least{machine_bytes(), "the memory and swap space of this machine"};
  const MemoryLimit group{control_group_bytes(), "the limit of its control group (container or batch job)"};
  const MemoryLimit space{address_space_bytes(), "what ulimit -v leaves", false};
  for (const MemoryLimit& other : {group, space}) {
    if (other.bytes < least.bytes) least = other;
  }
  return least;
}

OutOfMemory::OutOfMemory(Index bytes)
    : text_(fmt::format("out of memory: {} in one piece cannot be had", human_bytes(bytes))) {}

bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         dynamic_cast<const std::length_error*>(&error) != nullptr;
}

std::string describe_out_of_memory(const std::exception& error) {
  const auto* known = dynamic_cast<const OutOfMemory*>(&error);
  return known != nullptr ? known->what() : "out of memory";
}

}  // namespace lockstep
