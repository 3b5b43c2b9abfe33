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

enum class Place { kAnywhere, kFirst, kAlone };

Index weight_bytes(const ModelNode& node) {
  return node.params.size() * Index{sizeof(Scalar)};
}

Index sample_bytes(const ModelNode& node) {
  Index scalars = node.out.size();
  for (const Shape& in : node.in) scalars += in.size();
  return scalars * Index{sizeof(Scalar)};
}

Place place_of(const ModelNode& node, Place with_statistics) {
  if (node.shares || weight_bytes(node) > kWeightBytes) return Place::kAlone;
  return node.layer->statistics() != nullptr ? with_statistics : Place::kAnywhere;
}

// Pieces of the order of nodes.
std::vector<NodeRun> cut(const Model& model, Index block_bytes, Place with_statistics) {
  std::vector<NodeRun> runs;
  bool open = false;
  Index bytes = 0;
  Index weights = 0;
  for (Index i = 0; i < std::ssize(model.nodes()); ++i) {
    const ModelNode& node = model.node(i);
    const Place here = place_of(node, with_statistics);
    if (!open || here != Place::kAnywhere || weights + weight_bytes(node) > kRunWeightBytes) {
      runs.push_back({.nodes = {i, i}});
      bytes = 0;
      weights = 0;
    }
    open = here != Place::kAlone;
    bytes = std::max(bytes, sample_bytes(node));
    weights += weight_bytes(node);
    runs.back().nodes.end = i + 1;
    runs.back().rows = open ? std::max<Index>(block_bytes / bytes, 1) : 0;
  }
  return runs;
}

}  // namespace

std::vector<NodeRun> forward_runs(const Model& model) {
  return cut(model, kForwardBytes, Place::kFirst);
}

std::vector<NodeRun> backward_runs(const Model& model) {
  return cut(model, kBackwardBytes, Place::kAlone);
}

}  // namespace lockstep
