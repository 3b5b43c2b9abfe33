// How much of the activations of a batch is kept. What only the ops of one run use (OpRun) is kept
// for the samples that the run takes at a time: written and read again while it is in the cache.
#pragma once

#include <algorithm>
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

/// The offsets of buffers in one memory, in scalars. Two overlap if they are never needed at once.
struct SharedMemory {
  std::vector<Index> begin;
  Index size = 0;
};

/// The memory of outputs and of their gradients, by op, for batches of up to `batch` samples.
struct ActivationMemory {
  std::vector<RetainedSamples> samples;
  SharedMemory outputs = {};
  SharedMemory gradients = {};
};
ActivationMemory activation_memory(const Model& model, Index batch, ActivationRetention kept);

/// Scalars of the largest weight that ops of the model share: the gradient by one of them has memory of its
/// own before it is added to that of the owner. 0: none is shared.
Index tied_gradient_size(const Model& model);

/// Bytes of all that and of what layers keep for the backward pass, but not of gradients of activations that
/// are added to others.
Index activation_bytes(const Model& model, Index batch, ActivationRetention kept);

// Which ops a pass takes through a few samples at a time, so that what one op writes is still in the
// cache when the next reads it.

/// Neighbours in the order of ops that can take the samples of a batch in parts. Their weights are few
/// enough for one bucket.
struct OpRun {
  Range ops;
  Index rows = 0;  ///< samples at a time; 0: all at once

  /// Samples of a batch that the run takes at a time.
  Index rows_of(Index batch) const { return rows > 0 ? std::min(rows, batch) : batch; }
};

/// For the forward pass: each op is in one run, in order. An op with statistics starts a run, for it needs
/// the sums of all samples; an op with large weights, which is better off with many samples, runs alone, and
/// so does one that shares its weights.
std::vector<OpRun> forward_runs(const Model& model);

/// The runs of the backward pass, with more samples at a time. An op with statistics runs alone, too.
/// Gradients of a run are final with its last samples.
std::vector<OpRun> backward_runs(const Model& model);

/// For a stage that is not the last: the samples at a time with which the backward pass comes from the op
/// behind it; 0: all at once.
Index backward_rows_behind(const Model& model);

}  // namespace lockstep
