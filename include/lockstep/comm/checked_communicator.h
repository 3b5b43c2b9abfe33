// A communicator that compares every collective over the ranks before it runs, so that a rank which skips
// one, or asks for another count, is named instead of hanging the job. In debug builds, around the real one.
#pragma once

#include <memory>
#include <utility>

#include "lockstep/comm/communicator.h"

namespace lockstep {

inline constexpr bool kChecksCollectives = LOCKSTEP_CHECK_COLLECTIVES != 0;

class CheckedCommunicator final : public Communicator {
 public:
  explicit CheckedCommunicator(Communicator& inner) : inner_(inner) {}
  explicit CheckedCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void barrier() override;
  void broadcast(Buffer buffer, int root) override;
  void all_reduce_sum(Buffer buffer) override;
  std::unique_ptr<Request> start_all_reduce_sum(Buffer buffer) override;
  void all_gather(ConstBuffer mine, Buffer all) override;
  std::unique_ptr<Request> start_all_gather(Buffer whole, std::span<const Range> parts) override;
  /// Messages between pairs are not collective: not compared.
  std::unique_ptr<Request> start_exchange(int channel, std::span<const Send> sends,
                                          std::span<const Receive> receives) override;
  /// Parts are checked too, and so are the fences of windows.
  std::unique_ptr<Communicator> split(Index color, Index order) override;
  std::unique_ptr<Communicator> split_by_node(Index ranks_per_node) override;
  std::unique_ptr<SharedWindow> shared_window(Index bytes) override;
  void idle() override { inner_.idle(); }
  bool takes_threads() const override { return inner_.takes_threads(); }
  void abort(int exit_code) override { inner_.abort(exit_code); }

 private:
  void compare(Index call, Index count, DataType type);

  std::unique_ptr<Communicator> owned_;  // of a part; the whole belongs to who made it
  Communicator& inner_;
};

}  // namespace lockstep
