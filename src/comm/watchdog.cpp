// A *watcher* is a thread of each rank; the *board* is the memory that the ranks of a host share, with the
// Activity of each. At every *tick* the watcher looks at its own rank. A *stall* is known once that is stuck
// (stall.h) for longer than the limit, in a call that waits for others or, where there are other hosts that
// may wait for it, in none. The first of a host to know of it becomes the *speaker*: it logs one report of
// all ranks of the board, and another line when it gets on. If nobody comes for comm.abort_seconds, a rank
// that waits ends its process with kExitStalled, and so do all of its board; the launcher then ends the
// others.
#include "lockstep/comm/watchdog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "stall.h"

namespace lockstep {
namespace {

static_assert(std::atomic<double>::is_always_lock_free && std::atomic<Index>::is_always_lock_free,
              "shared between processes");

// It has no name in any file system (memfd), so that a killed rank leaves nothing behind. Where memory cannot
// be shared, each rank has a board of its own.
class Board : NoCopy {
 public:
  struct alignas(alignof(Activity)) Head {
    std::atomic<int> speaker = -1;    // a rank; -1: there is no stall
    std::atomic<bool> ended = false;  // the ranks of this board are to exit
  };

  // *Collective* over the ranks of a host. `rank`: of this process in the whole job.
  Board(Communicator& host, int rank) {
    const int file = open_shared(host);
    const bool shared = file >= 0;
    const int ranks = shared ? host.size() : 1;
    bytes_ = bytes_for(ranks);
    const int kind = shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kind, file, 0);
    if (memory_ == MAP_FAILED) throw CommError("mmap: no memory for the watchdog's board");
    own_ = shared ? host.rank() : 0;
    if (own_ == 0) new (memory_) Head;
    ranks_ = std::span(reinterpret_cast<Activity*>(&head() + 1), static_cast<std::size_t>(ranks));
    new (&mine()) Activity;
    mine().rank = rank;
    mine().pid = ::getpid();
    host.barrier();  // everybody has opened and filled it
    if (shared) ::close(file);
  }
  ~Board() { ::munmap(memory_, bytes_); }

  Head& head() { return *static_cast<Head*>(memory_); }
  Activity& mine() { return at(ranks_, own_); }
  std::span<const Activity> ranks() const { return ranks_; }

 private:
  static std::size_t bytes_for(int ranks) {
    return sizeof(Head) + static_cast<std::size_t>(ranks) * sizeof(Activity);
  }

  // The file of the lowest rank, opened by each through /proc; -1 where that fails.
  static int open_shared(Communicator& host) {
    int file = -1;
    Index where[] = {::getpid(), -1};
    if (host.rank() == 0) {
      file = ::memfd_create("lockstep-watch", MFD_CLOEXEC);
      if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes_for(host.size()))) == 0) where[1] = file;
    }
    host.broadcast(as_buffer(std::span(where)), 0);
    if (host.rank() != 0 && where[1] >= 0) {
      file = ::open(fmt::format("/proc/{}/fd/{}", where[0], where[1]).c_str(), O_RDWR | O_CLOEXEC);
    }
    if (all_true(host, file >= 0 && where[1] >= 0)) return file;  // -1: the file may have no bytes
    if (file >= 0) ::close(file);
    return -1;
  }

  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::span<Activity> ranks_;
  int own_ = 0;
};

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

class Watchdog::Watcher : NoCopy {
 public:
  Watcher(Communicator& comm, Communicator& host, const CommOptions& options)
      : options_(options),
        clock_(options.stall_seconds),
        rank_(comm.rank()),
        board_(host, rank_),
        other_hosts_(std::ssize(board_.ranks()) < comm.size()) {
    own_activity = &board_.mine();
    if (comm.size() > 1) thread_ = std::jthread([this](const std::stop_token& end) { watch(end); });
  }

  ~Watcher() { own_activity = nullptr; }

 private:
  void watch(const std::stop_token& end) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    Stopwatch since_tick;
    const std::chrono::duration<double> interval(clock_.interval());
    for (;;) {
      wake.wait_for(lock, end, interval, [] { return false; });
      if (end.stop_requested()) return;
      tick(since_tick.lap());
    }
  }

  void tick(double passed) {
    Activity& mine = board_.mine();
    if (const auto was_stuck = clock_.tick(mine.step, mine.marks, passed)) note_recovery(*was_stuck);
    mine.stuck = clock_.stuck();
    if (board_.head().ended) std::_Exit(kExitStalled);
    const bool waits = mine.call != Call::kNone;
    if (!waits && !other_hosts_) return;
    // Rank 0 has a log file: the others let it be the first.
    const double late = clock_.stuck() - clock_.limit() - (rank_ == 0 ? 0 : 2 * clock_.interval());
    if (late > 0 && !knows_) report(waits);
    if (waits && knows_ && options_.abort_seconds > 0) end_if_in_vain(late);
  }

  void report(bool waits) {
    knows_ = true;
    int nobody = -1;
    if (!board_.head().speaker.compare_exchange_strong(nobody, rank_)) return;
    std::string text = describe_stall(board_.ranks(), clock_.stuck(), other_hosts_);
    if (waits && options_.abort_seconds > 0) {
      text +=
          fmt::format("\n  the job ends in {:.0f} s with exit code {} unless they come (comm.abort_seconds)",
                      options_.abort_seconds, kExitStalled);
    }
    log_warning("{}", text);
  }

  void note_recovery(double was_stuck) {
    knows_ = false;
    int me = rank_;
    if (!board_.head().speaker.compare_exchange_strong(me, -1)) return;
    log_warning("stall: the ranks go on after {:.1f} s", was_stuck);
  }

  // The speaker first, so that its line is complete before others exit.
  void end_if_in_vain(double late) {
    constexpr double kSpeakerFirst = 3;
    const bool speaks = board_.head().speaker == rank_;
    if (late < options_.abort_seconds + (speaks ? 0 : kSpeakerFirst)) return;
    log_error("stall: nobody has come for {:.1f} s, and the job ends", clock_.stuck());
    board_.head().ended = true;
    std::_Exit(kExitStalled);
  }

  CommOptions options_;
  StallClock clock_;
  int rank_;
  Board board_;
  bool other_hosts_;    // there are ranks that the board does not show
  bool knows_ = false;  // of the stall that there is
  std::jthread thread_;
};

Watchdog::Watchdog(Communicator& comm, const CommOptions& options, Index ranks_per_node)
    : watcher_(std::make_unique<Watcher>(comm, *comm.split_by_node(ranks_per_node), options)) {}
Watchdog::~Watchdog() = default;

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
