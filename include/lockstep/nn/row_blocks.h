// Which nodes a pass takes through a few samples at a time, so that what one node writes is still in the
// cache when the next reads it.
#pragma once

#include <algorithm>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep {

/// Neighbours in the order of nodes that can take the samples of a batch in parts. Their weights are few
/// enough for one bucket.
struct NodeRun {
  Range nodes;
  Index rows = 0;  ///< samples at a time; 0: all at once

  /// Of a batch, the samples that it takes at a time.
  Index rows_of(Index batch) const { return rows > 0 ? std::min(rows, batch) : batch; }
};

/// For the forward pass: each node is in one run, in order. A node with statistics starts a run, for it needs
/// the sums of all samples; a node with large weights, which is better off with many samples, runs alone, and
/// so does one that shares its weights.
std::vector<NodeRun> forward_runs(const Model& model);

/// The same for the backward pass, with more samples at a time. A node with statistics runs alone, too.
/// Gradients of a run are final with its last samples.
std::vector<NodeRun> backward_runs(const Model& model);

}  // namespace lockstep
