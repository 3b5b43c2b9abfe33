// The weights in the precision that a model multiplies in: rounded once, for all passes with the same
// weights.
#pragma once

#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/nn/model.h"

namespace lockstep {

class RoundedWeights {
 public:
  explicit RoundedWeights(const Model& model);

  /// Rounds what layers multiply with, shared out over the team. The result, an arena like `weights`, is
  /// valid until the next call; it is empty if the model is in fp32.
  std::span<const Bf16> round(std::span<const Scalar> weights, ThreadTeam& team);

 private:
  std::vector<Range> tensors_;
  AlignedBuffer<Bf16> arena_;
};

}  // namespace lockstep
