// The exchange between watchers of several nodes about a stall: files in the run directory. On one node
// nothing is written.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "stall_report.h"
#include "watched_communicator.h"

namespace lockstep {

/// One rank of a node, as its node sees it now.
RankStatus status_of(const NodeBoard::Slot& slot, bool answered);

class StallRendezvous {
 public:
  /// *Collective* over `comm`; `node`: the ranks of this node.
  StallRendezvous(Communicator& comm, Communicator& node);

  void set_rendezvous(const std::filesystem::path& run_directory);
  /// Whether this node is the first to find the stall, and so the one that reports.
  bool is_first();
  /// All ranks: those of this node, and those of the nodes that report theirs within `seconds`.
  std::vector<RankStatus> gather(std::vector<RankStatus> own, double seconds);
  /// Reports this node to the others, once for each request.
  void answer_if_asked(const std::function<std::vector<RankStatus>()>& own);
  /// The stall is over.
  void forget();

 private:
  bool alone() const { return !knows_directory_ || nodes_.size() == 1; }
  std::filesystem::path request() const { return directory_ / "request"; }
  std::filesystem::path report_of(int node) const;

  std::vector<RankStatus> ranks_;  // all, as far as it is known from the start: host and pid
  std::vector<int> nodes_;         // the lowest rank of each
  int node_ = 0;                   // this one
  bool has_answered_ = false;
  std::filesystem::path directory_;
  std::atomic<bool> knows_directory_ = false;
};

}  // namespace lockstep
