// Room for the activations of one batch, and the walk through the layers, forward and back. One per thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"

namespace lockstep {

/// Called when the gradient of a layer is complete, last layer first.
using LayerDone = std::function<void(Index layer)>;

class Workspace {
 public:
  /// Memory for batches of up to `max_rows` samples; with `for_training`, for the way back as well.
  Workspace(const Model& model, Index max_rows, bool for_training);

  /// The outputs (n x outputs) for the samples x (n x inputs, n <= max_rows); valid until the next call.
  ConstMatrix forward(std::span<const Scalar> weights, const ConstMatrix& x);

  /// After forward() on the same x: the gradient of the loss by the outputs, to be filled before backward().
  Matrix output_gradient();

  /// After forward() and filling output_gradient(): the gradient by the weights, summed over the samples,
  /// into the arena `gradient`. `done` (may be empty) is called after each layer that has weights.
  void backward(std::span<const Scalar> weights, const ConstMatrix& x, std::span<Scalar> gradient,
                Write write, const LayerDone& done);

  /// After forward(): the first layer whose output is not finite, if any.
  std::optional<Index> first_bad_layer() const;

 private:
  ConstMatrix output(std::size_t layer, const ConstMatrix& x) const;

  const Model& model_;
  Index rows_ = 0;
  std::vector<AlignedBuffer<Scalar>> outputs_;    // by layer; empty for one that only reshapes
  std::vector<AlignedBuffer<Scalar>> gradients_;  // by layer, of its output; likewise
};

}  // namespace lockstep
