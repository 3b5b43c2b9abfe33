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
  std::vector<Range> rounded_tensors_;
  AlignedBuffer<Bf16> rounded_;
};

}  // namespace lockstep
