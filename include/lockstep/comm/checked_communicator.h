// A communicator that compares every collective over the ranks before it runs, so that a rank which skips
// one, or asks for another count, is named instead of hanging the job. In debug builds, around the real one.
#pragma once

#include <memory>
#include <utility>

#include "lockstep/comm/forwarding_communicator.h"

namespace lockstep {

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
