// From summed gradients to new weights: divide once by the samples, clip, and let the optimizer step, tensor
// by tensor.
#pragma once

#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/nn/params.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {

/// A mean gradient beyond this counts as bad as NaN: its square must be a number still, and with the largest
/// learning rate (1e6) a step from it must leave the weights finite. So weights are good after every step
/// that is taken.
inline constexpr Scalar kMostGradient = 1e18F;

/// What a step asks of the update.
struct UpdateRequest {
  Index step = 1;     ///< number of this update, from 1
  Index samples = 1;  ///< of the step, over all replicas
  double lr = 0;
};

struct UpdateRules {
  double weight_decay = 0;
  double clip_norm = 0;  ///< gradients are scaled down to this global norm; 0: never (Pascanu et al. 2013)
};

class ParameterUpdate {
 public:
  /// Owns the optimizer's slots. References must outlive it.
  ParameterUpdate(const Layout& layout, const Optimizer& optimizer, const UpdateRules& rules);

  /// *Local.* One step on all weights. `gradient_sum` (summed over samples, layout.size scalars) is used up.
  /// Returns false, with the weights untouched, if a gradient is not finite.
  bool apply(std::span<Scalar> weights, std::span<Scalar> gradient_sum, const UpdateRequest& request);

 private:
  void clip(std::span<Scalar> gradient) const;
  void step_tensor(const ParamInfo& param, std::span<Scalar> weights, std::span<Scalar> gradient,
                   const UpdateRequest& request);

  const Layout& layout_;
  const Optimizer& optimizer_;
  UpdateRules rules_;
  std::vector<AlignedBuffer<Scalar>> slots_;
};

}  // namespace lockstep
