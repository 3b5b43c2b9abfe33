#include "faults.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>

namespace lockstep {
namespace {

void hang(const DebugOptions& debug, Communicator& comm) {
  const bool mine = comm.rank() == debug.hang_rank;
  if (debug.hang == Hang::kSkip) {
    if (!mine) comm.barrier();
    return;
  }
  volatile bool forever = mine;
  while (forever) {
  }
}

}  // namespace

void force_faults(const DebugOptions& debug, Communicator& comm, Index step) {
  const int rank = comm.rank();
  if (debug.delay_rank == rank) std::this_thread::sleep_for(std::chrono::milliseconds(debug.delay_ms));
  if (debug.fail_rank == rank && debug.fail_step == step) {
    throw std::runtime_error(
        fmt::format("debug.fail_rank {} fails at step {} as asked", debug.fail_rank, step));
  }
  if (debug.hang_rank >= 0 && debug.hang_step == step) hang(debug, comm);
}

void flip_bit(const DebugOptions& debug, Communicator& comm, Scalar& weight) {
  if (comm.rank() == debug.flip_rank) {
    weight = std::bit_cast<Scalar>(std::bit_cast<std::uint32_t>(weight) ^ (std::uint32_t{1} << 20));
  }
  comm.barrier();  // the others may share that memory
}

}  // namespace lockstep
