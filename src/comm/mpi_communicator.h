// Ranks are MPI processes. Whatever waits for other ranks notes that for the watchdog (Waiting).
#pragma once

#include <mpi.h>

#include <memory>

#include "lockstep/comm/communicator.h"
#include "stall.h"

namespace lockstep {

class MpiCommunicator final : public Communicator, NoCopy {
 public:
  /// Takes `comm` over, and frees it.
  explicit MpiCommunicator(MPI_Comm comm);
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
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
  bool takes_threads() const override;
  void abort(int exit_code) override;

 private:
  Waiting begin(Call call) { return {call, ++calls_, number_}; }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  Index number_ = 0;  // see Activity
  Index calls_ = 0;   // so far, that wait for other ranks
};

// Error codes of MPI calls become CommErrors.

/// Throws a CommError with the name of the call, the class and MPI's text unless `code` is MPI_SUCCESS.
void check(int code, const char* call);

}  // namespace lockstep
