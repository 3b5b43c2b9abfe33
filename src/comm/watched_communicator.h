// A communicator that writes down when this rank starts to wait for others and when it resumes: what the
// watchdog reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

/// The marks of one rank: its communicator and all that are split off write into the same activity, from one
/// thread. What other threads do (see ProgressThread) is not what the rank waits for.
class Marks {
 public:
  explicit Marks(Activity& activity) : activity_(activity) {}

  void enter(Call call, Index number, Index communicator);
  void leave();
  void idle(Index communicator);
  void note_phase(Phase phase, Index bucket);
  void note_step(Index step, Range samples);
  void note_stage(Index stage);
  Index next_communicator() { return communicators_++; }

 private:
  bool concerns_me() const { return std::this_thread::get_id() == owner_; }
  void get_on();

  Activity& activity_;
  std::thread::id owner_ = std::this_thread::get_id();
  Index communicators_ = 0;
};

class WatchedCommunicator final : public ForwardingCommunicator {
 public:
  /// Both outlive it.
  WatchedCommunicator(Communicator& inner, Marks& marks)
      : ForwardingCommunicator(inner), marks_(marks), number_(marks.next_communicator()) {}
  WatchedCommunicator(std::unique_ptr<Communicator> inner, Marks& marks)
      : ForwardingCommunicator(std::move(inner)), marks_(marks), number_(marks.next_communicator()) {}

  void barrier() override;
  void broadcast(Buffer buffer, int root) override;
  void all_reduce_sum(Buffer buffer) override;
  std::unique_ptr<Request> start_all_reduce_sum(Buffer buffer) override;
  void all_gather(ConstBuffer mine, Buffer all) override;
  std::unique_ptr<Request> start_all_gather(Buffer whole, std::span<const Range> parts) override;
  std::unique_ptr<Request> start_exchange(int channel, std::span<const Send> sends,
                                          std::span<const Receive> receives) override;
  std::unique_ptr<Communicator> split(Index color, Index order) override;
  std::unique_ptr<Communicator> split_by_node(Index ranks_per_node) override;
  std::unique_ptr<SharedWindow> shared_window(Index bytes) override;
  void idle() override;
  void note_phase(Phase phase, Index bucket = -1) override { marks_.note_phase(phase, bucket); }
  void note_step(Index step, Range samples) override { marks_.note_step(step, samples); }
  void note_stage(Index stage) override { marks_.note_stage(stage); }

 private:
  /// Runs `work`, which waits for other ranks.
  template <class Work>
  auto waiting(Call call, const Work& work);

  Marks& marks_;
  Index number_;
  Index calls_ = 0;
};

// Memory in which the ranks of a node see what each of them does, whatever their main threads wait for. It
// has no name in any file system (memfd), so that a killed rank leaves nothing behind.

class NodeBoard {
 public:
  struct Slot {
    Activity activity;
    std::atomic<int> rank = -1;  ///< the rank in the whole job
    std::atomic<int> pid = 0;
    std::atomic<double> stuck = 0;    ///< seconds since it last got on, as of its watcher's last look
    std::atomic<Index> answered = 0;  ///< the last question that its watcher has answered
  };
  struct Head {
    std::atomic<Index> asked = 0;     ///< questions so far: each is for all ranks
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
