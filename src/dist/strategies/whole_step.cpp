#include "whole_step.h"

namespace lockstep {

StepOutcome take_whole_step(ParameterUpdate& update, std::span<Scalar> weights, std::span<Scalar> sum,
                            const UpdateRequest& request) {
  const Scalar loss = sum[weights.size()];  // behind the gradients of the weights
  StepOutcome outcome{.mean_loss = static_cast<double>(loss) / static_cast<double>(request.samples)};
  const std::span<Scalar> gradient = sum.first(weights.size());
  outcome.applied = all_finite(std::span(&loss, 1)) && update.good(gradient, request.samples);
  if (outcome.applied) update.step(weights, gradient, request);
  return outcome;
}

}  // namespace lockstep
