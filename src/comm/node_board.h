// Memory in which the ranks of a node see what each of them does, whatever their main threads wait for. It
// has no name in any file system (memfd), so that a killed rank leaves nothing behind.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "lockstep/comm/activity.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

class NodeBoard {
 public:
  struct Slot {
    Activity activity;
    std::atomic<int> rank = -1;  ///< the rank in the whole job
    std::atomic<int> pid = 0;
    std::atomic<double> stuck = 0;       ///< seconds since it last got on, as of its watcher's last look
    std::atomic<Index> answered = 0;     ///< the last question that its watcher has answered
    std::array<char, 12000> stack = {};  ///< stacks of its threads, a text; written before `answered`
  };
  struct Head {
    std::atomic<Index> asked = 0;     ///< questions so far: each is for all stacks
    std::atomic<int> speaker = -1;    ///< rank that has found a stall, and asks
    std::atomic<bool> ended = false;  ///< the ranks of this node are to exit
  };

  /// *Collective* over the ranks of the node. `rank`: of this process in the whole job. Where memory cannot
  /// be shared, each rank gets a board of its own with one slot.
  NodeBoard(Communicator& node, int rank);
  ~NodeBoard();
  NodeBoard(const NodeBoard&) = delete;
  NodeBoard& operator=(const NodeBoard&) = delete;

  Head& head() { return *head_; }
  Slot& mine() { return slots_[own_]; }
  std::span<Slot> slots() { return slots_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Head* head_ = nullptr;
  std::span<Slot> slots_;
  std::size_t own_ = 0;
};

}  // namespace lockstep
