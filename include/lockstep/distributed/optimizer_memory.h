// The memory of an optimizer beside weights and gradients, known before the run.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lockstep/distributed/blocks.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {

class OptimizerMemory {
 public:
  /// An optimizer of so many numbers for each weight.
  OptimizerMemory(Index slots = 0) : slots_(slots) {}
  OptimizerMemory(const Optimizer& optimizer, const Layout& layout);

  /// Slots that one weight may have.
  Index slots() const { return slots_; }
  /// The grain in which weights have owners, where these take the steps.
  Grain grain() const { return grid_ ? Grain::kTensor : Grain::kBlock; }
  /// Bytes of the owner of these ranges of the arena, who takes the steps on so many threads.
  Index bytes(std::span<const Range> owned, Index threads) const;
  /// Bytes of one of `owners`, who have the first `size` numbers of the arena among themselves.
  Index share_bytes(Index size, Index owner, Index owners, Index threads) const;
  /// Bytes in a checkpoint, for so many weights in all.
  Index saved_bytes(Index parameters) const;

 private:
  struct Tensor {
    Range range;
    Index state = 0;
    Index held = 0;  // the same with gaps for alignment
    Index scratch = 0;
  };

  Index slots_;
  std::optional<BlockGrid> grid_;  // blocks of whole tensors; empty if the optimizer does not need those
  std::vector<Tensor> tensors_;    // likewise
};

}  // namespace lockstep
