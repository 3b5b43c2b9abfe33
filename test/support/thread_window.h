// Shared windows where ranks are threads: plain memory.
#pragma once

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/comm/communicator.h"
#include "support/common.h"

namespace lockstep {

// The parts of all ranks; it lives until the last of their windows is gone.
using WindowMemory = std::vector<AlignedBuffer<std::byte>>;

class ThreadWindow final : public SharedWindow {
 public:
  ThreadWindow(Communicator& comm, std::shared_ptr<WindowMemory> memory)
      : comm_(comm), memory_(std::move(memory)) {}

  std::span<std::byte> part(int rank) override { return (*memory_)[static_cast<std::size_t>(rank)].span(); }
  void fence() override { comm_.barrier(); }

 private:
  Communicator& comm_;
  std::shared_ptr<WindowMemory> memory_;
};

}  // namespace lockstep
