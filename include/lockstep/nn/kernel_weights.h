// The weights as kernels take them: made ready once, for all passes with the same weights.
#pragma once

#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/nn/model.h"

namespace lockstep {

class KernelWeights {
 public:
  explicit KernelWeights(const Model& model);

  /// `values` with a version of its own, by which kernels know weights that they have re-laid, and for a
  /// model in bf16 with what layers multiply with rounded, shared out over the team. Valid until the next
  /// call, and as long as the weights stay as they are.
  ModelValues prepare(const ModelValues& values, ThreadTeam& team);

 private:
  // The tensors of an arena that are rounded, and where to.
  struct Rounding {
    std::vector<Range> tensors = {};
    AlignedBuffer<Bf16> rounded = {};

    std::span<const Bf16> round(std::span<const Scalar> weights, ThreadTeam& team);
  };
  Rounding own_;
  Rounding borrowed_;
};

}  // namespace lockstep
