// Watchers of several nodes exchange statuses by files in RUN/stall, since they may not call MPI. The
// protocol has three kinds of steps. is_first(): the node that creates the file `request` exclusively reports
// the stall; all others only answer. answer_if_asked(): a node that finds the request writes node-R.json,
// where R is its lowest rank, once for each request. gather(): the reporting node polls for those files until
// all nodes have answered or the time is over.
//
// Files are written atomically, so a reader sees all of a status or none. Host and process number of every
// rank are exchanged by MPI at the start: so the report can name a rank whose node does not answer. If
// nothing can be written in the run directory, each node reports for itself. forget() removes the directory
// when the stall is over, which makes the next request possible.
#include "stall_rendezvous.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "lockstep/base/environment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

// "" where it cannot be read: it may be about to be written, or gone.
std::string text_of(const std::filesystem::path& file) {
  try {
    return read_file(file);
  } catch (const Error&) {
    return "";
  }
}

// The state is the letter behind the name in /proc/PID/stat; the name may itself hold brackets.
std::string process_state(int pid) {
  const std::string text = text_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t at = text.rfind(')');
  if (at == std::string::npos || at + 2 >= text.size()) return "gone";
  const char state = text[at + 2];
  if (state == 'T' || state == 't') return "stopped";
  return state == 'Z' || state == 'X' ? "gone" : "";
}

}  // namespace

RankStatus status_of(const NodeBoard::Slot& slot, bool answered) {
  const Activity& activity = slot.activity;
  RankStatus status{.rank = slot.rank, .host = host_name(), .pid = slot.pid};
  status.known = true;
  status.answered = answered;
  if (!answered) status.process = process_state(status.pid);
  status.phase = activity.phase;
  status.step = activity.step;
  status.first_sample = activity.first_sample;
  status.end_sample = activity.end_sample;
  status.bucket = activity.bucket;
  status.stage = activity.stage;
  status.call = activity.call;
  status.call_number = activity.call_number;
  status.communicator = activity.communicator;
  status.stuck = slot.stuck;
  return status;
}

StallRendezvous::StallRendezvous(Communicator& comm, Communicator& node) : node_(comm.rank()) {
  Index lowest = comm.rank();
  node.broadcast(as_buffer(std::span(&lowest, 1)), 0);
  node_ = static_cast<int>(lowest);
  const std::vector<std::string> all =
      gather_texts(comm, fmt::format("{} {} {}", lowest, ::getpid(), host_name()));
  std::set<int> nodes;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string& text = all[rank];
    const std::size_t first = text.find(' ');
    const std::size_t second = text.find(' ', first + 1);
    nodes.insert(std::stoi(text));
    ranks_.push_back({.rank = static_cast<int>(rank),
                      .host = text.substr(second + 1),
                      .pid = std::stoi(text.substr(first + 1))});
  }
  nodes_.assign(nodes.begin(), nodes.end());
}

std::filesystem::path StallRendezvous::report_of(int node) const {
  return directory_ / fmt::format("node-{}.json", node);
}

void StallRendezvous::set_rendezvous(const std::filesystem::path& run_directory) {
  directory_ = run_directory / "stall";
  knows_directory_ = true;
}

bool StallRendezvous::is_first() {
  if (alone()) return true;
  std::error_code ignored;
  std::filesystem::create_directory(directory_, ignored);
  const int file = ::open(request().c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return errno != EEXIST;  // if nothing can be written, each node reports
  ::close(file);
  return true;
}

std::vector<RankStatus> StallRendezvous::gather(std::vector<RankStatus> own, double seconds) {
  std::vector<RankStatus> all = ranks_;
  const auto take = [&all](const std::vector<RankStatus>& some) {
    for (const RankStatus& status : some) {
      if (0 <= status.rank && status.rank < std::ssize(all)) at(all, status.rank) = status;
    }
  };
  take(own);
  std::set<int> missing(nodes_.begin(), nodes_.end());
  missing.erase(node_);
  const Stopwatch waiting;
  while (!alone() && !missing.empty() && waiting.seconds() < seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::erase_if(missing, [&](int node) {
      const std::vector<RankStatus> statuses = statuses_from_json(text_of(report_of(node)));
      take(statuses);
      return !statuses.empty();
    });
  }
  return all;
}

void StallRendezvous::answer_if_asked(const std::function<std::vector<RankStatus>()>& own) {
  if (alone()) return;
  std::error_code ignored;
  const bool asked = std::filesystem::exists(request(), ignored);
  if (asked && !has_answered_ && !std::filesystem::exists(report_of(node_), ignored)) {
    try {
      write_file_atomically(report_of(node_), to_json(own()));
    } catch (const Error&) {
      // The report says that this host does not answer.
    }
  }
  has_answered_ = asked;
}

void StallRendezvous::forget() {
  std::error_code ignored;
  if (!alone()) std::filesystem::remove_all(directory_, ignored);
}

}  // namespace lockstep
