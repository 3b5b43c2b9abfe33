// Weights, gradient and slots of one tensor under an optimizer.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/optim/optimizer.h"
#include "support/squares.h"

namespace lockstep::test {

struct OptimizerRun {
  OptimizerRun(const Optimizer& chosen, std::vector<Scalar> start)
      : optimizer(&chosen),
        weights(std::move(start)),
        gradient(weights.size()),
        slots(static_cast<std::size_t>(chosen.slots()), std::vector<Scalar>(weights.size())) {}

  /// Updates the elements of `range` only.
  void update(Range range, const StepInfo& info) {
    const auto cut = [&](std::vector<Scalar>& whole) {
      return std::span(whole).subspan(static_cast<std::size_t>(range.begin),
                                      static_cast<std::size_t>(range.size()));
    };
    std::vector<std::span<Scalar>> cut_slots;
    for (std::vector<Scalar>& slot : slots) cut_slots.push_back(cut(slot));
    optimizer->update({.weights = cut(weights), .gradient = cut(gradient), .slots = cut_slots}, info);
  }

  /// The rest of a step for an optimizer with a trust ratio, see Optimizer::update.
  void apply_direction(const StepInfo& info) {
    if (!optimizer->uses_trust_ratio()) return;
    const double ratio = std::sqrt(sum_of_squares(weights) / sum_of_squares(gradient));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] -= static_cast<Scalar>(info.lr * ratio) * gradient[i];
    }
  }

  void step(const StepInfo& info) {
    update({0, std::ssize(weights)}, info);
    apply_direction(info);
  }

  const Optimizer* optimizer;
  std::vector<Scalar> weights;
  std::vector<Scalar> gradient;
  std::vector<std::vector<Scalar>> slots;
};

}  // namespace lockstep::test
