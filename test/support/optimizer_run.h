// Weights, gradient and slots of one tensor under an optimizer.
#pragma once

#include "lockstep/base/types.h"
#include "lockstep/optim/optimizer.h"
#include "support/common.h"
#include "support/squares.h"

namespace lockstep::test {

struct OptimizerRun {
  /// `shape`: of the whole tensor; a vector if not given.
  OptimizerRun(const Optimizer& chosen, std::vector<Scalar> start, const TensorInfo& shape = {})
      : optimizer(&chosen),
        weights(std::move(start)),
        gradient(weights.size()),
        tensor(shape.columns > 0 ? shape : TensorInfo{.columns = std::ssize(weights)}) {
    for (int slot = 0; slot < chosen.slots(); ++slot) {
      const Index size = chosen.needs_whole_tensors() ? chosen.slot_size(slot, tensor) : tensor.size();
      slots.emplace_back(static_cast<std::size_t>(size));
    }
    scratch.resize(static_cast<std::size_t>(chosen.scratch_size(tensor)));
  }

  /// Updates the elements of `range` only; of a whole tensor, if the optimizer needs such, all of them.
  void update(Range range, const StepInfo& info) {
    const auto cut = [&](std::vector<Scalar>& whole) {
      return std::span(whole).subspan(static_cast<std::size_t>(range.begin),
                                      static_cast<std::size_t>(range.size()));
    };
    const bool whole = optimizer->needs_whole_tensors();
    std::vector<std::span<Scalar>> cut_slots;
    for (std::vector<Scalar>& slot : slots) cut_slots.push_back(whole ? std::span(slot) : cut(slot));
    StepInfo own = info;
    own.momentum_product = optimizer->momentum_product(info.step);
    optimizer->update({.weights = cut(weights),
                       .gradient = cut(gradient),
                       .slots = cut_slots,
                       .tensor = whole ? &tensor : nullptr,
                       .scratch = scratch},
                      own);
  }

  /// The rest of a step for an optimizer with a trust ratio, see Optimizer::update.
  void apply_direction(const StepInfo& info) {
    if (!optimizer->uses_trust_ratio()) return;
    const double ratio = std::sqrt(sum_of_squares(weights) / sum_of_squares(gradient));
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] -= static_cast<Scalar>(info.lr * ratio) * gradient[i];
  }

  void step(const StepInfo& info) {
    update({0, std::ssize(weights)}, info);
    apply_direction(info);
  }

  const Optimizer* optimizer;
  std::vector<Scalar> weights;
  std::vector<Scalar> gradient;
  TensorInfo tensor;
  std::vector<std::vector<Scalar>> slots;
  std::vector<Scalar> scratch;
};

}  // namespace lockstep::test
