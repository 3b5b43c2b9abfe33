#include "stall.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/process.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 9> kCallNames{
    "",      "barrier", "broadcast", "all_reduce_sum", "all_gather",
    "split", "window",  "request",   "shared memory"};

template <class Value>
void set(std::atomic<Value>& field, std::type_identity_t<Value> value) {
  field.store(value, std::memory_order_relaxed);
}

// One thread writes: a load and a store, not an addition that locks.
void get_on(Activity& mine) {
  set(mine.marks, mine.marks.load(std::memory_order_relaxed) + 1);
}

void begin(Call call, Index number, Index communicator) {
  if (own_activity == nullptr) return;
  set(own_activity->number, number);
  set(own_activity->communicator, communicator);
  set(own_activity->call, call);
  get_on(*own_activity);
}

// "" while it runs. The state is the letter behind the name in /proc/PID/stat; the name may itself hold
// brackets.
std::string process_state(int pid) {
  std::string text;
  try {
    text = read_file(fmt::format("/proc/{}/stat", pid));
  } catch (const Error&) {
    return "gone";
  }
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return "gone";
  const char state = text[name_end + 2];
  if (state == 'T' || state == 't') return "stopped";
  return state == 'Z' || state == 'X' ? "gone" : "";
}

bool waits(const Activity& rank) {
  return rank.call != Call::kNone && process_state(rank.pid).empty();
}

std::string call_of(const Activity& rank) {
  const Index number = rank.number;
  const Index communicator = rank.communicator;
  return fmt::format("{}{} of {}", at(kCallNames, static_cast<Index>(rank.call.load())),
                     number > 0 ? fmt::format(" {}", number) : "",
                     communicator == 0 ? "all ranks" : fmt::format("part {} of the ranks", communicator));
}

std::string phase_of(const Activity& rank) {
  const Phase phase = rank.phase;
  std::string text = fmt::format("phase {}", at(kPhaseNames, static_cast<Index>(phase)));
  if (rank.step >= 0) text += fmt::format(" of step {}", rank.step + 1);
  const bool passes = phase == Phase::kStageForward || phase == Phase::kStageBackward;
  if (rank.bucket >= 0) text += fmt::format(", {} {}", passes ? "micro-batch" : "bucket", rank.bucket.load());
  if (rank.stage >= 0) text += fmt::format(", stage {}", rank.stage.load());
  return text;
}

std::string describe(const Activity& rank) {
  const std::string text = fmt::format("rank {} (host {}, pid {}) ", rank.rank, host_name(), rank.pid);
  if (const std::string state = process_state(rank.pid); !state.empty()) {
    return text + fmt::format("is {}, in {}", state, phase_of(rank));
  }
  const std::string call = rank.call == Call::kNone ? "waits for nobody" : "waits in " + call_of(rank);
  return text + fmt::format("{}, in {}, for {:.1f} s", call, phase_of(rank), rank.stuck.load());
}

}  // namespace

Waiting::Waiting(Call call, Index number, Index communicator) {
  begin(call, number, communicator);
}

Waiting::~Waiting() {
  if (own_activity == nullptr) return;
  set(own_activity->call, Call::kNone);
  get_on(*own_activity);
}

void note_idle(Index communicator) {
  if (own_activity != nullptr && own_activity->call != Call::kIdle) begin(Call::kIdle, 0, communicator);
}

void note_phase(Phase phase, Index bucket) {
  if (own_activity == nullptr) return;
  set(own_activity->call, Call::kNone);
  set(own_activity->phase, phase);
  if (bucket >= 0) set(own_activity->bucket, bucket);
  get_on(*own_activity);
}

void note_step(Index step) {
  if (own_activity == nullptr) return;
  set(own_activity->step, step);
  set(own_activity->bucket, -1);
  get_on(*own_activity);
}

void note_stage(Index stage) {
  if (own_activity != nullptr) set(own_activity->stage, stage);
}

std::vector<int> missing_ranks(std::span<const Activity> ranks) {
  std::vector<int> missing;
  std::map<std::string, std::vector<int>> waiting;  // by their call
  for (const Activity& rank : ranks) {
    (waits(rank) ? waiting[call_of(rank)] : missing).push_back(rank.rank);
  }
  if (!missing.empty() || waiting.size() <= 1) return missing;
  std::size_t most = 0;
  for (const auto& [call, members] : waiting) most = std::max(most, members.size());
  const auto majorities =
      std::ranges::count_if(waiting, [&](const auto& group) { return group.second.size() == most; });
  for (const auto& [call, members] : waiting) {
    if (majorities > 1 || members.size() < most) {
      missing.insert(missing.end(), members.begin(), members.end());
    }
  }
  std::ranges::sort(missing);
  return missing;
}

std::string describe_stall(std::span<const Activity> ranks, double stuck, bool other_hosts) {
  const std::vector<int> missing = missing_ranks(ranks);
  std::string text = fmt::format("stall: ranks have waited for {:.1f} s; ", stuck);
  if (std::ranges::none_of(ranks, waits)) {
    text = fmt::format("stall: this host's ranks have not got on for {:.1f} s, and wait for nobody", stuck);
  } else if (!missing.empty()) {
    text += fmt::format("{} of {}{} did not arrive: rank{} {}", missing.size(), ranks.size(),
                        other_hosts ? " on this host" : "", missing.size() == 1 ? "" : "s",
                        fmt::join(missing, ", "));
  } else if (other_hosts) {
    text += "all of this host wait in the same call, for ranks of another one";
  } else {
    text += "all wait in the same call, so messages do not get through: look at the network";
  }
  for (const Activity& rank : ranks) text += "\n  " + describe(rank);
  if (other_hosts) {
    text += "\n  each host tells of its own ranks: one that says nothing is stopped or cut off";
  }
  return text;
}

StallClock::StallClock(double stall_seconds)
    : stall_seconds_(stall_seconds),
      interval_(stall_seconds == 0 ? 1 : std::clamp(stall_seconds / 10, 0.01, 1.0)) {}

std::optional<double> StallClock::tick(Index step, std::uint64_t marks, double seconds) {
  // If more has gone by, the job was suspended.
  const double passed = std::min(seconds, 2 * interval_);
  step_seconds_ += passed;
  if (step != step_) {
    if (step_ >= 0) longest_step_ = std::max(longest_step_, step_seconds_);
    step_ = step;
    step_seconds_ = 0;
  }
  stuck_ += passed;
  if (marks == seen_) return {};
  seen_ = marks;
  return std::exchange(stuck_, 0);
}

double StallClock::limit() const {
  constexpr double kLeast = 60;
  constexpr double kSteps = 20;
  return stall_seconds_ > 0 ? stall_seconds_ : std::max(kLeast, kSteps * longest_step_);
}

}  // namespace lockstep
