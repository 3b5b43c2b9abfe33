// Each rank's watcher thread looks at its own main thread every interval. A rank is *stuck* while the marks
// that its calls leave in its Activity do not change (StallClock). The header describes the channels: the
// node's board in shared memory, and files between nodes.
//
// A stall is handled in this order. When a rank is stuck for longer than the limit and is inside an MPI call,
// it claims the role of speaker on its node's board; ranks other than 0 wait a little longer, so that rank 0,
// which has the log file, comes first. The speaker whose node made the request file first is the one that
// reports: it raises the question counter on the board, each watcher answers, other nodes
// answer in files, and one warning names the ranks that did not come. If the rank gets on, the claim is
// undone and the recovery is logged. If nobody comes for abort_seconds, the job ends: the reporting rank
// first, the others kCourtesy later, so that its message is complete.
#include "lockstep/comm/watchdog.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "stall_clock.h"
#include "stall_rendezvous.h"
#include "watched_communicator.h"

namespace lockstep {
namespace {

constexpr double kGatherSeconds = 5;    // seconds that the other nodes have to report their ranks
constexpr double kAnswerSeconds = 0.5;  // beyond its next look

}  // namespace

class Watchdog::Watcher {
 public:
  Watcher(Communicator& comm, const CommOptions& options, Index ranks_per_node, End end)
      : options_(options),
        clock_(options.stall_seconds),
        end_(std::move(end)),
        rank_(comm.rank()),
        node_(comm.split_by_node(ranks_per_node)),
        board_(*node_, rank_),
        rendezvous_(comm, *node_),
        marks_(board_.mine().activity),
        watched_(comm, marks_) {
    if (!end_) end_ = [] { std::_Exit(kExitStalled); };
    if (comm.size() > 1) thread_ = std::jthread([this] { watch(); });
  }

  ~Watcher() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
  }

  Communicator& comm() { return watched_; }
  void set_rendezvous(const std::filesystem::path& run_directory) {
    rendezvous_.set_rendezvous(run_directory);
    if (rank_ == 0) rendezvous_.forget();  // an earlier run may have left files there
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    Stopwatch since_look;
    const std::chrono::duration<double> interval(clock_.interval());
    while (!wake_.wait_for(lock, interval, [this] { return stopping_; })) look(since_look.lap());
  }

  void look(double passed) {
    const Activity& activity = board_.mine().activity;
    if (const auto stuck = clock_.look(activity.step, activity.marks, passed); stuck && reported_)
      log_recovery(*stuck);
    board_.mine().stuck = clock_.stuck();
    answer();
    if (board_.head().ended) end_();
    if (clock_.stuck() > clock_.limit() / 2) rendezvous_.answer_if_asked([this] { return ask_node(); });
    if (activity.call == Call::kNone) return;
    // Rank 0 has a log file: the others let it be the first.
    const double courtesy = rank_ == 0 ? 0 : 2 * clock_.interval();
    if (!reported_ && clock_.stuck() > clock_.limit() + courtesy) report();
    if (options_.abort_seconds > 0) end_if_in_vain();
  }

  void answer() { board_.mine().answered = board_.head().asked.load(); }

  // Collects the status of the ranks of this node; waits for their answers.
  std::vector<RankStatus> ask_node() {
    const Index question = ++board_.head().asked;
    answer();
    const auto answered = [question](const NodeBoard::Slot& slot) { return slot.answered >= question; };
    const Stopwatch waiting;
    const double longest = 2 * clock_.interval() + kAnswerSeconds;
    while (waiting.seconds() < longest && !std::ranges::all_of(board_.slots(), answered)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::vector<RankStatus> ranks;
    for (const NodeBoard::Slot& slot : board_.slots()) ranks.push_back(status_of(slot, answered(slot)));
    return ranks;
  }

  void report() {
    reported_ = true;
    int nobody = -1;
    if (!board_.head().speaker.compare_exchange_strong(nobody, rank_)) return;
    reports_ = rendezvous_.is_first();
    if (!reports_) return;
    const std::vector<RankStatus> ranks = rendezvous_.gather(ask_node(), kGatherSeconds);
    const std::string end = options_.abort_seconds > 0
                                ? fmt::format(
                                      "\n  the job ends in {:.0f} s with exit code {} unless they come "
                                      "(comm.abort_seconds)",
                                      options_.abort_seconds, kExitStalled)
                                : "";
    log_warning("{}{}", describe_stall(ranks, clock_.stuck()), end);
  }

  void log_recovery(double stuck) {
    reported_ = false;
    int mine = rank_;
    board_.head().speaker.compare_exchange_strong(mine, -1);
    if (!std::exchange(reports_, false)) return;
    rendezvous_.forget();
    log_warning("stall: the ranks go on after {:.1f} s", stuck);
  }

  // Ends the job if the stall has lasted too long. The rank that reported the stall logs the end; the others
  // wait longer, so that it comes first.
  void end_if_in_vain() {
    constexpr double kCourtesy = kGatherSeconds + 3;
    if (clock_.stuck() < clock_.limit() + options_.abort_seconds + (reports_ ? 0 : kCourtesy)) return;
    if (!reported_) return;
    log_error("stall: nobody has come for {:.1f} s, and the job ends", clock_.stuck());
    board_.head().ended = true;
    end_();
  }

  CommOptions options_;
  StallClock clock_;
  End end_;
  int rank_;
  std::unique_ptr<Communicator> node_;
  NodeBoard board_;
  StallRendezvous rendezvous_;
  Marks marks_;
  WatchedCommunicator watched_;

  // Only the watcher's thread uses these.
  bool reported_ = false;  // this stall is known
  bool reports_ = false;   // and this rank reports it

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::jthread thread_;
};

Watchdog::Watchdog(Communicator& comm, const CommOptions& options, Index ranks_per_node, End end)
    : watcher_(std::make_unique<Watcher>(comm, options, ranks_per_node, std::move(end))) {}
Watchdog::~Watchdog() = default;

Communicator& Watchdog::comm() {
  return watcher_->comm();
}

void Watchdog::set_rendezvous(const std::filesystem::path& run_directory) {
  watcher_->set_rendezvous(run_directory);
}

}  // namespace lockstep
