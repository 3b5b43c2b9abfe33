#include "lockstep/dist/update.h"

#include <cmath>

#include "lockstep/math/kernels.h"

namespace lockstep {

ParameterUpdate::ParameterUpdate(const Layout& layout, const Optimizer& optimizer, const UpdateRules& rules)
    : layout_(layout), optimizer_(optimizer), rules_(rules) {
  for (int slot = 0; slot < optimizer.slots(); ++slot) slots_.emplace_back(layout.size);
}

bool ParameterUpdate::apply(std::span<Scalar> weights, std::span<Scalar> gradient_sum,
                            const UpdateRequest& request) {
  if (!divide(gradient_sum, static_cast<Scalar>(request.samples), kMostGradient)) return false;
  clip(gradient_sum);
  for (const ParamInfo& param : layout_.params) {
    step_tensor(param, part(weights, param.range), part(gradient_sum, param.range), request);
  }
  return true;
}

// As torch.nn.utils.clip_grad_norm_.
void ParameterUpdate::clip(std::span<Scalar> gradient) const {
  if (rules_.clip_norm <= 0) return;
  const double norm = std::sqrt(sum_of_squares(gradient));
  const double scale = rules_.clip_norm / (norm + 1e-6);
  if (scale < 1) as_array(gradient) *= static_cast<Scalar>(scale);
}

void ParameterUpdate::step_tensor(const ParamInfo& param, std::span<Scalar> weights,
                                  std::span<Scalar> gradient, const UpdateRequest& request) {
  std::vector<std::span<Scalar>> slots;
  for (AlignedBuffer<Scalar>& slot : slots_) slots.push_back(part(slot.span(), param.range));
  optimizer_.update(
      {.weights = weights, .gradient = gradient, .slots = slots},
      {.step = request.step, .lr = request.lr, .weight_decay = param.decays ? rules_.weight_decay : 0.0});
  if (!optimizer_.uses_trust_ratio()) return;
  // You et al. 2019, algorithm 2, with the identity for phi; a zero norm leaves the step as it is.
  const double weight_norm = std::sqrt(sum_of_squares(weights));
  const double direction_norm = std::sqrt(sum_of_squares(gradient));
  const double ratio = weight_norm > 0 && direction_norm > 0 ? weight_norm / direction_norm : 1.0;
  as_array(weights) -= static_cast<Scalar>(request.lr * ratio) * as_array(gradient);
}

}  // namespace lockstep
