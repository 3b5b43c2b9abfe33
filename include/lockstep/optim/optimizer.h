// An optimizer is stateless arithmetic on a slice of the arena: weights, gradients and slots are handed in.
// A step on the slices of a tensor gives the same bits as one on the whole, so an owner of a slice is an
// optimizer for free.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/optim/options.h"

namespace lockstep {

struct StepInfo {
  Index step = 1;             ///< number of this update, from 1 (Adam's t)
  double lr = 0;              ///< learning rate of this step, all scaling and schedule included
  double weight_decay = 0;    ///< 0 for tensors that do not decay
  Scalar gradient_scale = 1;  ///< the gradient is this many times what the slice has of it
};

/// A range of one tensor: n weights, their gradient but for its scale (which divides by the samples, and
/// clips), and n scalars of each slot.
struct ParamSlice {
  std::span<Scalar> weights;
  std::span<Scalar> gradient;
  std::span<const std::span<Scalar>> slots;
};

/// Slots of an optimizer, at most.
inline constexpr std::size_t kMaxSlots = 2;

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Numbers of state per weight, zero at the start: sgd 0, momentum 1, adam 2; at most kMaxSlots.
  virtual int slots() const = 0;

  /// One step on a slice, with the same bits as if the gradient were multiplied by its scale before. With
  /// `uses_trust_ratio()` it leaves the weights alone and turns the gradient into the direction of the step:
  /// the caller then subtracts lr * |weights| / |direction| * direction, norms per tensor, the quotient 1
  /// where either norm is 0.
  virtual void update(const ParamSlice& slice, const StepInfo& info) const = 0;

  /// Layer-wise scaling (LAMB), which needs the norms of whole tensors.
  virtual bool uses_trust_ratio() const { return false; }
};

struct OptimizerEntry {
  std::string name;
  std::string help;                  ///< one sentence, with its source
  std::vector<std::string> options;  ///< config keys that it reads, "train.momentum"
  std::function<std::unique_ptr<Optimizer>(const OptimizerOptions&)> make;
};

/// Every optimizer there is. To add one: src/README.md.
std::span<const OptimizerEntry> optimizer_catalog();

}  // namespace lockstep
