// A communicator that compares every collective over the ranks before it runs, so that a rank which skips
// one, or asks for another count, is named instead of hanging the job. In debug builds, around the real one.
#pragma once

#include <string_view>

#include "lockstep/comm/communicator.h"

namespace lockstep {

inline constexpr bool kChecksCollectives = LOCKSTEP_CHECK_COLLECTIVES != 0;

class CheckedCommunicator final : public Communicator {
 public:
  explicit CheckedCommunicator(Communicator& inner) : inner_(inner) {}

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
  void abort(int exit_code) override { inner_.abort(exit_code); }

 private:
  void compare(Index call, Index count, DataType type);

  Communicator& inner_;
};

}  // namespace lockstep
