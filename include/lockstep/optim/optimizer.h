// An optimizer is stateless arithmetic on a slice of the arena: weights, gradients and slots are handed in.
// A step on the slices of a tensor gives the same bits as one on the whole, so an owner of a slice is an
// optimizer for free. A few optimizers need whole tensors, and say so; then a tensor has one owner.
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
  Index step = 1;               ///< number of this update, from 1 (Adam's t)
  double lr = 0;                ///< learning rate of this step, all scaling and schedule included
  double weight_decay = 0;      ///< 0 for tensors that do not decay
  Scalar gradient_scale = 1;    ///< the gradient is this many times what the slice has of it
  double momentum_product = 0;  ///< Optimizer::momentum_product(step)
};

/// A whole tensor as a matrix of rows x columns: a convolution kernel is out x (in * height * width), and
/// what is no matrix (biases, the weights of normalisation layers) is one row.
struct TensorInfo {
  enum class Kind {
    kVector,  ///< no matrix
    kTable,   ///< the table of an embedding
    kOutput,  ///< a matrix of the last layer that has one
    kMatrix   ///< any other
  };
  Index rows = 1;
  Index columns = 0;
  Kind kind = Kind::kVector;

  Index size() const { return rows * columns; }
};

/// A range of one tensor: n weights, their gradient but for its scale (which divides by the samples, and
/// clips), and n scalars of each slot.
struct ParamSlice {
  std::span<Scalar> weights;
  std::span<Scalar> gradient;
  std::span<const std::span<Scalar>> slots;
  /// Only for an optimizer that needs whole tensors: which one this is, and as much memory as its
  /// scratch_size().
  const TensorInfo* tensor = nullptr;
  std::span<Scalar> scratch = {};
};

/// Slots of an optimizer, at most.
inline constexpr std::size_t kMaxSlots = 2;

class Optimizer {
 public:
  explicit Optimizer(const OptimizerOptions& options) : options_(options) {}
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

  /// Whether update() takes whole tensors only. It may use up their gradients.
  virtual bool needs_whole_tensors() const { return false; }
  /// Numbers in a slot for a whole tensor, at most as many as the tensor has; with needs_whole_tensors()
  /// only.
  virtual Index slot_size(int, const TensorInfo& tensor) const { return tensor.size(); }
  /// Numbers that update() needs beside them for a whole tensor, and that it does not keep.
  virtual Index scratch_size(const TensorInfo&) const { return 0; }

  /// The product of the momenta of all steps up to this one, where momentum changes from step to step
  /// (nadam): it takes longer than the step on a slice.
  virtual double momentum_product(Index) const { return 0; }

 protected:
  OptimizerOptions options_;
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
