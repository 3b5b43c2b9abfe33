// A communicator that compares every collective over the ranks before it runs, so that a rank which skips
// one, or asks for another count, is named instead of hanging the job. In debug builds, around the real one.
#pragma once

#include <memory>
#include <utility>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// Base of decorators: hands every call on to another communicator. A decorator overrides the calls that it
/// checks or disturbs.
class ForwardingCommunicator : public Communicator {
 public:
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void barrier() override { inner_.barrier(); }
  void broadcast(Buffer buffer, int root) override { inner_.broadcast(buffer, root); }
  void all_reduce_sum(Buffer buffer) override { inner_.all_reduce_sum(buffer); }
  std::unique_ptr<Request> start_all_reduce_sum(Buffer buffer) override {
    return inner_.start_all_reduce_sum(buffer);
  }
  void all_gather(ConstBuffer mine, Buffer all) override { inner_.all_gather(mine, all); }
  std::unique_ptr<Request> start_all_gather(Buffer whole, std::span<const Range> parts) override {
    return inner_.start_all_gather(whole, parts);
  }
  std::unique_ptr<Request> start_exchange(int channel, std::span<const Send> sends,
                                          std::span<const Receive> receives) override {
    return inner_.start_exchange(channel, sends, receives);
  }
  std::unique_ptr<SharedWindow> shared_window(Index bytes) override { return inner_.shared_window(bytes); }
  void idle() override { inner_.idle(); }
  bool takes_threads() const override { return inner_.takes_threads(); }
  void abort(int exit_code) override { inner_.abort(exit_code); }

 protected:
  /// Around the whole, which belongs to who made it and outlives this.
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}
  /// Around a part.
  explicit ForwardingCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  Communicator& inner() { return inner_; }

 private:
  std::unique_ptr<Communicator> owned_;  // null around the whole
  Communicator& inner_;
};

inline constexpr bool kChecksCollectives = LOCKSTEP_CHECK_COLLECTIVES != 0;

/// Messages between pairs are not collective: not compared.
class CheckedCommunicator final : public ForwardingCommunicator {
 public:
  explicit CheckedCommunicator(Communicator& inner) : ForwardingCommunicator(inner) {}
  explicit CheckedCommunicator(std::unique_ptr<Communicator> inner)
      : ForwardingCommunicator(std::move(inner)) {}

  void barrier() override;
  void broadcast(Buffer buffer, int root) override;
  void all_reduce_sum(Buffer buffer) override;
  std::unique_ptr<Request> start_all_reduce_sum(Buffer buffer) override;
  void all_gather(ConstBuffer mine, Buffer all) override;
  std::unique_ptr<Request> start_all_gather(Buffer whole, std::span<const Range> parts) override;
  /// Parts are checked too, and so are the fences of windows.
  std::unique_ptr<Communicator> split(Index color, Index order) override;
  std::unique_ptr<Communicator> split_by_node(Index ranks_per_node) override;
  std::unique_ptr<SharedWindow> shared_window(Index bytes) override;

 private:
  void compare(Index collective, Index count, DataType type, Index root = 0);
};

}  // namespace lockstep
