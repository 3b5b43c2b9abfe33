// A communicator with a fault on purpose: the n-th call of one rank fails, or sends nothing, or calls come
// late, always in the same place. Over ranks as threads.
#pragma once

#include "lockstep/comm/checked_communicator.h"
#include "support/common.h"

namespace lockstep::test {

struct Fault {
  enum class Kind { kNone, kFail, kDrop };
  Kind kind = Kind::kNone;
  int rank = 0;
  Index call = 0;     ///< of that rank's calls on all communicators, from 0; kDrop: of its start_exchange
  Index delayed = 0;  ///< each so many-th call of every rank comes a millisecond late, another one on each
                      ///< rank; 0: none
};

/// What a rank has called so far, on the whole and on all parts of it.
struct CallCount {
  Index calls = 0;
  Index exchanges = 0;
};

class FaultyCommunicator final : public ForwardingCommunicator {
 public:
  /// References outlive it. `rank` of the fault is that in the first of these communicators.
  FaultyCommunicator(Communicator& inner, const Fault& fault, CallCount& count)
      : ForwardingCommunicator(inner), fault_(fault), count_(count), rank_(inner.rank()) {}

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

 private:
  // Around a part, of the rank with that number in the whole.
  FaultyCommunicator(std::unique_ptr<Communicator> inner, const Fault& fault, CallCount& count, int rank)
      : ForwardingCommunicator(std::move(inner)), fault_(fault), count_(count), rank_(rank) {}
  std::unique_ptr<Communicator> part(std::unique_ptr<Communicator> inner);
  void count_call();

  const Fault& fault_;
  CallCount& count_;
  int rank_;
};

}  // namespace lockstep::test
