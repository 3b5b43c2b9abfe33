#include "full_update.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/math/sample_weights.h"

namespace lockstep {

StepOutcome take_full_update(ParameterUpdate& update, std::span<Scalar> weights, std::span<Scalar> sum,
                             const UpdateRequest& request) {
  const Scalar loss_sum = sum[weights.size()];  // behind the gradients of the weights
  const std::span<Scalar> gradient = sum.first(weights.size());
  bool good = all_finite(std::span(&loss_sum, 1)) && update.good(gradient, request.weight);
  auto loss = static_cast<double>(loss_sum);
  update.agree_over_stages(good, loss);
  const StepOutcome outcome{.applied = good, .mean_loss = mean_of(loss, request.weight)};
  if (outcome.applied) update.step(weights, gradient, request);
  return outcome;
}

std::string describe_bad_sum(const Layout& layout, std::span<const Scalar> sum, double weight) {
  if (!std::isfinite(at(sum, layout.size))) return "the loss is not finite";
  for (auto param = layout.params.rbegin(); param != layout.params.rend(); ++param) {
    if (all_within(part(sum, param->range), max_sum(weight))) continue;
    return fmt::format("the gradient of {} is not finite or beyond 1e18", param->name);
  }
  return "the gradient is not finite";
}

}  // namespace lockstep
