// A communicator that writes down when this rank starts to wait for others and when it resumes: what the
// watchdog reads.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "lockstep/comm/forwarding_communicator.h"

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

}  // namespace lockstep
