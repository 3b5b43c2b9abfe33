// The ops of a model are cut into runs. The ops of a run work on one block of samples after another: so the
// output of an op is still in the second-level cache when the next op reads it. The samples of a block are as
// many as fit into block_bytes with the inputs and the output of the largest op of the run.
//
// A run ends where blocks would not pay or would be wrong. An op with large weights (above kWeightBytes) gets
// a run of its own without blocks, since each block would read all its weights again. An op that shares its
// weights gets one, too, and so does one that ranks may compute together, for all samples at once
// (split_layer.h). An op with statistics needs sums over all samples, so it begins a run in the forward
// pass and is a run of its own in the backward pass. And a run's weights stay below kRunWeightBytes: their
// gradients are ready only with its last block, so longer runs would delay buckets.
#include "lockstep/nn/row_blocks.h"

#include <algorithm>

#include "lockstep/nn/split_layer.h"

namespace lockstep {
namespace {

// A quarter of the second-level cache of today's servers: what was fastest there. Twice that in the backward
// pass, where each block adds to the gradient of the weights. A quarter of a forward block may be weights, so
// that samples fit too.
constexpr Index kForwardBytes = Index{1} << 19;
constexpr Index kBackwardBytes = 2 * kForwardBytes;
constexpr Index kWeightBytes = kForwardBytes / 4;
// Weights of a run: their gradients are final together, so about a bucket.
constexpr Index kRunWeightBytes = Index{1} << 20;

enum class RunPosition { kAnywhere, kFirst, kAlone };

Index weight_bytes(const ModelOp& op) {
  return op.params.size() * Index{sizeof(Scalar)};
}

Index sample_bytes(const ModelOp& op) {
  Index scalars = op.out.size();
  for (const Shape& in : op.in) scalars += in.size();
  return scalars * Index{sizeof(Scalar)};
}

RunPosition position_of(const ModelOp& op, RunPosition with_statistics) {
  const bool splits = dynamic_cast<const SplitLayer*>(op.layer.get()) != nullptr;
  if (op.shares || splits || weight_bytes(op) > kWeightBytes) return RunPosition::kAlone;
  return op.layer->statistics() != nullptr ? with_statistics : RunPosition::kAnywhere;
}

// Pieces of the order of ops.
std::vector<OpRun> cut(const Model& model, Index block_bytes, RunPosition with_statistics) {
  std::vector<OpRun> runs;
  bool open = false;
  Index bytes = 0;
  Index weights = 0;
  for (Index i = 0; i < std::ssize(model.ops()); ++i) {
    const ModelOp& op = model.op(i);
    const RunPosition here = position_of(op, with_statistics);
    if (!open || here != RunPosition::kAnywhere || weights + weight_bytes(op) > kRunWeightBytes) {
      runs.push_back({.ops = {i, i}});
      bytes = 0;
      weights = 0;
    }
    open = here != RunPosition::kAlone;
    bytes = std::max(bytes, sample_bytes(op));
    weights += weight_bytes(op);
    runs.back().ops.end = i + 1;
    runs.back().rows = open ? std::max<Index>(block_bytes / bytes, 1) : 0;
  }
  return runs;
}

// A stage takes the blocks of the whole model, so that its sums over samples are the same. What it receives
// passes in the blocks of the op before it: an op with statistics behind adds what it sees in these.
std::vector<OpRun> cut_stage(const Model& model, Index block_bytes, RunPosition with_statistics) {
  std::vector<OpRun> whole = cut(model.whole(), block_bytes, with_statistics);
  if (!model.is_stage()) return whole;
  std::vector<OpRun> runs;
  const Index shift = model.received().end - model.stage().begin;
  for (const OpRun& run : whole) {
    if (run.ops.contains(model.stage().begin - 1))
      runs.push_back({.ops = model.received(), .rows = run.rows});
    const Range here = intersect(run.ops, model.stage());
    if (!here.empty()) runs.push_back({.ops = {here.begin + shift, here.end + shift}, .rows = run.rows});
  }
  return runs;
}

}  // namespace

std::vector<OpRun> forward_runs(const Model& model) {
  return cut_stage(model, kForwardBytes, RunPosition::kFirst);
}

std::vector<OpRun> backward_runs(const Model& model) {
  return cut_stage(model, kBackwardBytes, RunPosition::kAlone);
}

Index backward_rows_behind(const Model& model) {
  for (const OpRun& run : cut(model.whole(), kBackwardBytes, RunPosition::kAlone)) {
    if (run.ops.contains(model.stage().end)) return run.rows;
  }
  return 0;
}

}  // namespace lockstep
