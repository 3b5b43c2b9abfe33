#include "lockstep/nn/row_blocks.h"

#include <algorithm>

namespace lockstep {
namespace {

// A quarter of the second-level cache of today's servers: what was fastest there. Twice that in the backward
// pass, where each block adds to the gradient of the weights. And as much of it for weights as leaves room
// for samples.
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
  if (op.shares || weight_bytes(op) > kWeightBytes) return RunPosition::kAlone;
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

}  // namespace

std::vector<OpRun> forward_runs(const Model& model) {
  return cut(model, kForwardBytes, RunPosition::kFirst);
}

std::vector<OpRun> backward_runs(const Model& model) {
  return cut(model, kBackwardBytes, RunPosition::kAlone);
}

}  // namespace lockstep
