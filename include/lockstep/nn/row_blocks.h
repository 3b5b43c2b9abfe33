// Which ops a pass takes through a few samples at a time, so that what one op writes is still in the
// cache when the next reads it.
#pragma once

#include <algorithm>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep {

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
