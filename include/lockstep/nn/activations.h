// How much of the activations of a batch is kept. What only the ops of one run use (row_blocks.h) is kept
// for the samples that the run takes at a time: written and read again while it is in the cache.
#pragma once

#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep {

enum class ActivationRetention {
  kForEvaluation,  ///< buffers that the forward pass needs
  kForTraining,    ///< buffers that the forward and backward passes need
  kOutputs,        ///< every output of every sample, to be looked at after the forward pass of training
  kAll,            ///< every gradient too: ops can be taken one by one
};

/// Capacity of an op's buffers in samples: a batch, one block of it, or 0 if it uses another op's.
struct RetainedSamples {
  Index output = 0;
  Index gradient = 0;  ///< capacity for the gradient of the output
};

/// By op, for batches of up to `batch` samples.
std::vector<RetainedSamples> retained_samples(const Model& model, Index batch, ActivationRetention kept);

/// Scalars of the largest weight that ops of the model share: the gradient by one of them has memory of its
/// own before it is added to that of the owner. 0: none is shared.
Index tied_gradient_size(const Model& model);

/// Bytes of all that and of what layers keep for the backward pass, but not of gradients of activations that
/// are added to others.
Index activation_bytes(const Model& model, Index batch, ActivationRetention kept);

}  // namespace lockstep
